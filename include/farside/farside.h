// All of Farside's public interface.
//
//   pool.h      Pool                         far memory with tables in it
//   table.h     Table                        a handle of one table
//   session.h   Session                      the operations on tables; one session for each thread
//   result.h    Result, Status, Error        a value, or what went wrong and what to do about it
//   record.h    Record, Cursor, TableStats   what tables hold
//   range.h     KeyRange, RangeCursor        ranges of keys, for tables that keep their keys in order
//   task.h      Task                         an operation as a coroutine
#pragma once

#include "farside/pool.h"
#include "farside/range.h"
#include "farside/record.h"
#include "farside/result.h"
#include "farside/session.h"
#include "farside/table.h"
#include "farside/task.h"
