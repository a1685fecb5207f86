// Certificates for tests: an authority, and what it signs, made anew in a folder that goes away at the end.
#pragma once

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fabric/tcp/tls.h"

namespace farside::fabric {

// What a certificate is to say.
struct CertificateWanted {
  std::string name = "a client";
  std::vector<std::string> units = {"read-write"};  // organizational units
  int unit_encoding = MBSTRING_UTF8;                // or a type of ASN.1, with its bytes
  std::string hosts = {};                           // "IP:127.0.0.1,DNS:localhost"
  // Extended key usages, "" for none; if nothing is said, what a client or a node has.
  std::optional<std::string> usage = std::nullopt;
  long valid_from = -3600;  // seconds from now
  long valid_until = 3600;
};

class Certificates {
 public:
  struct Files {
    std::string certificate;
    std::string key;
  };

  Certificates() {
    std::string folder = (std::filesystem::temp_directory_path() / "farside-test-XXXXXX").string();
    if (mkdtemp(folder.data()) == nullptr) std::abort();
    folder_ = folder;
    ca_key_.reset(EVP_EC_gen("P-256"));
    ca_ = Make(CertificateWanted{.name = folder_.filename().string()}, ca_key_.get(), /*is_ca=*/true);
    Save(ca_file(), [this](FILE* file) { PEM_write_X509(file, ca_.get()); });
  }
  Certificates(const Certificates&) = delete;
  Certificates& operator=(const Certificates&) = delete;
  ~Certificates() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  std::string ca_file() const { return folder_ / "ca.pem"; }

  // Signs a new certificate.
  Files Issue(CertificateWanted wanted, const std::string& usual_usage) {
    if (!wanted.usage.has_value()) wanted.usage = usual_usage;
    const Key key(EVP_EC_gen("P-256"));
    const Certificate certificate = Make(wanted, key.get(), /*is_ca=*/false);
    const std::string base = folder_ / std::to_string(serial_);
    const Files files{base + ".pem", base + ".key"};
    Save(files.certificate, [&](FILE* file) { PEM_write_X509(file, certificate.get()); });
    Save(files.key,
         [&](FILE* file) { PEM_write_PrivateKey(file, key.get(), nullptr, nullptr, 0, nullptr, nullptr); });
    return files;
  }

  tcp::ServerTls Server(const CertificateWanted& wanted = {.name = "a node",
                                                           .hosts = "IP:127.0.0.1,DNS:localhost"}) {
    const Files files = Issue(wanted, "serverAuth");
    return {.certificate_file = files.certificate, .key_file = files.key, .client_ca_file = ca_file()};
  }
  tcp::ClientTls Client(const CertificateWanted& wanted = {}) {
    const Files files = Issue(wanted, "clientAuth");
    return {.certificate_file = files.certificate, .key_file = files.key, .ca_file = ca_file()};
  }

 private:
  struct Free {
    void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
    void operator()(X509* certificate) const { X509_free(certificate); }
  };
  using Key = std::unique_ptr<EVP_PKEY, Free>;
  using Certificate = std::unique_ptr<X509, Free>;

  template <class Write>
  static void Save(const std::string& path, Write write) {
    FILE* const file = std::fopen(path.c_str(), "w");
    if (file == nullptr) std::abort();
    write(file);
    std::fclose(file);
  }

  static void Name(X509_NAME* name, const char* field, const std::string& text, int encoding) {
    X509_NAME_add_entry_by_txt(name, field, encoding, reinterpret_cast<const unsigned char*>(text.data()),
                               static_cast<int>(text.size()), -1, 0);
  }
  static void Extend(X509* certificate, X509* issuer, int nid, const char* value) {
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
    X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value);
    X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
  }

  Certificate Make(const CertificateWanted& wanted, EVP_PKEY* key, bool is_ca) {
    Certificate certificate(X509_new());
    X509* const raw = certificate.get();
    X509_set_version(raw, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(raw), ++serial_);
    X509_gmtime_adj(X509_getm_notBefore(raw), wanted.valid_from);
    X509_gmtime_adj(X509_getm_notAfter(raw), wanted.valid_until);
    X509_set_pubkey(raw, key);
    Name(X509_get_subject_name(raw), "CN", wanted.name, MBSTRING_UTF8);
    for (const std::string& unit : wanted.units)
      Name(X509_get_subject_name(raw), "OU", unit, wanted.unit_encoding);
    X509* const issuer = is_ca ? raw : ca_.get();
    X509_set_issuer_name(raw, X509_get_subject_name(issuer));
    Extend(raw, issuer, NID_basic_constraints, is_ca ? "critical,CA:TRUE" : "CA:FALSE");
    if (!wanted.hosts.empty()) Extend(raw, issuer, NID_subject_alt_name, wanted.hosts.c_str());
    const std::string usage = wanted.usage.value_or("");
    if (!usage.empty()) Extend(raw, issuer, NID_ext_key_usage, usage.c_str());
    X509_sign(raw, ca_key_.get(), EVP_sha256());
    return certificate;
  }

  std::filesystem::path folder_;
  long serial_ = 0;
  Key ca_key_;
  Certificate ca_;
};

}  // namespace farside::fabric
