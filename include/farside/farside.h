// All of Farside's public interface.
//
//   result.h    Result, Status, Error        a value, or what went wrong and what to do about it
//   task.h      Task                         an operation as a coroutine
//   record.h    Record, Cursor, TableStats   what tables hold
//   range.h     KeyRange, RangeCursor        keys in order
//   pool.h      Pool                         far memory with tables in it
//   table.h     Table                        one of them
//   session.h   Session                      what a thread uses them through
#pragma once

#include "farside/pool.h"
#include "farside/range.h"
#include "farside/record.h"
#include "farside/result.h"
#include "farside/session.h"
#include "farside/table.h"
#include "farside/task.h"
