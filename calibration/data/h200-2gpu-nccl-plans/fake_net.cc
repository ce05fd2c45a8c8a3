// SPDX-License-Identifier: Apache-2.0
// A network plugin for NCCL that moves nothing: it names as many adapters as NAMED_ADAPTERS says (fab0, fab1 ...), of NAMED_SPEED Mb/s, that may read and write GPU
// memory, so that NCCL plans for hosts that are not there. Structures as NVIDIA/nccl documents them in ext-net (version 8 of the interface).
#include <cstdint>
#include <cstdio>
#include <cstdlib>

extern "C" {
struct Properties {
  char* name;
  char* pci_path;
  std::uint64_t guid;
  int pointer_support;
  int registration_is_global;
  int speed;
  int port;
  float latency;
  int most_connections;
  int most_receives;
  int device_type;
  int device_version;
};
static char names[16][8];
static int number(const char* key, int otherwise) { const char* text = std::getenv(key); return text ? std::atoi(text) : otherwise; }
static int init(void*) { return 0; }
static int devices(int* count) { *count = number("NAMED_ADAPTERS", 1); return 0; }
static int properties(int dev, Properties* out) {
  std::snprintf(names[dev], sizeof names[dev], "fab%d", dev);
  *out = {names[dev], nullptr, static_cast<std::uint64_t>(dev + 1), 3, 0, number("NAMED_SPEED", 400000), 1, 0, 65536, 8, 0, 0};
  return 0;
}
static int listen_(int, void* handle, void** comm) { *static_cast<char*>(handle) = 1; *comm = names; return 0; }
static int connect_(int, void*, void** comm, void**) { *comm = names; return 0; }
static int accept_(void*, void** comm, void**) { *comm = names; return 0; }
static int reg(void*, void*, std::size_t, int, void** handle) { *handle = names; return 0; }
static int reg_dma(void*, void*, std::size_t, int, std::uint64_t, int, void** handle) { *handle = names; return 0; }
static int dereg(void*, void*) { return 0; }
static int isend(void*, void*, int, int, void*, void** request) { *request = names; return 0; }
static int irecv(void*, int, void**, int*, int*, void**, void** request) { *request = names; return 0; }
static int iflush(void*, int, void**, int*, void**, void** request) { *request = names; return 0; }
static int test(void*, int* done, int*) { *done = 1; return 0; }
static int close_(void*) { return 0; }
struct Net {
  const char* name;
  int (*init)(void*);
  int (*devices)(int*);
  int (*properties)(int, Properties*);
  int (*listen)(int, void*, void**);
  int (*connect)(int, void*, void**, void**);
  int (*accept)(void*, void**, void**);
  int (*reg)(void*, void*, std::size_t, int, void**);
  int (*reg_dma)(void*, void*, std::size_t, int, std::uint64_t, int, void**);
  int (*dereg)(void*, void*);
  int (*isend)(void*, void*, int, int, void*, void**);
  int (*irecv)(void*, int, void**, int*, int*, void**, void**);
  int (*iflush)(void*, int, void**, int*, void**, void**);
  int (*test)(void*, int*, int*);
  int (*close_send)(void*);
  int (*close_receive)(void*);
  int (*close_listen)(void*);
  int (*device_mr)(void*, void*, void**);
  int (*consumed)(void*, int, void*);
};
__attribute__((visibility("default"))) Net ncclNetPlugin_v8 = {"Fabric", init, devices, properties, listen_, connect_, accept_, reg, reg_dma, dereg, isend, irecv, iflush, test, close_, close_, close_, nullptr, nullptr};
}
