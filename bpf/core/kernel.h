/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The parts of the kernel's BPF interface that this program uses. They are declared here so that building needs only
 * clang (distribution headers are older than the kernels we support). Numbers and layouts are kernel ABI. */
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int s32;
typedef long long s64;
typedef u16 be16;
typedef u32 be32;
typedef _Bool bool;
#define true 1
#define false 0

#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
#define NOINLINE static __attribute__((noinline))
#define SEPARATE __attribute__((noinline)) /* the verifier checks it separately */
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
/* Keeps the compiler from merging look-ups in two tables into one call, which the kernel could then not inline. */
#define NO_MERGE() asm volatile("")
/* Forces a re-read from memory. */
#define REREAD() asm volatile("" ::: "memory")
#define HTONS(x) ((be16)__builtin_bswap16((u16)(x)))
#define NTOHS(x) ((u16)__builtin_bswap16((be16)(x)))

/* BTF map definitions */
#define MAP_UINT(name, val) int(*name)[val]
#define MAP_TYPE(name, val) typeof(val) *name

enum map_type {
	MAP_HASH = 1,
	MAP_ARRAY = 2,
	MAP_PROG_ARRAY = 3,
	MAP_PERCPU_ARRAY = 6,
	MAP_LRU_HASH = 9,
	MAP_ARRAY_OF_MAPS = 12,
	MAP_RINGBUF = 27,
};
enum map_flag {
	MAP_NO_PREALLOC = 1U << 0,
	MAP_MMAPABLE = 1U << 10,
};
enum ringbuf_flag {
	RINGBUF_NO_WAKE = 1, /* of bpf_ringbuf_output */
	RINGBUF_WAKE = 2,
	RINGBUF_UNREAD = 0, /* of bpf_ringbuf_query: bytes */
};
enum update_flag {
	UPDATE_ANY = 0,
	UPDATE_NOEXIST = 1,
};

/* The return values of a tcx program. The kernel treats any other number as "next" and would leak the frame into the
 * host's stack, so no other number is ever returned. */
enum verdict {
	VERDICT_NEXT = -1,
	VERDICT_PASS = 0, /* to the host, past other programs */
	VERDICT_DROP = 2,
	VERDICT_REDIRECT = 7,
};

enum redirect_flag {
	REDIRECT_INGRESS = 1, /* to the receiving side of the device itself */
};

struct __sk_buff {
	u32 len;
	u32 pkt_type;
	u32 mark;
	u32 queue_mapping;
	u32 protocol;
	u32 vlan_present;
	u32 vlan_tci;
	u32 vlan_proto;
	u32 priority;
	u32 ingress_ifindex;
	u32 ifindex;
	u32 tc_index;
	u32 cb[5];
	u32 hash;
	u32 tc_classid;
	u32 data;
	u32 data_end;
	u32 napi_id;
	u32 family;
	u32 remote_ip4;
	u32 local_ip4;
	u32 remote_ip6[4];
	u32 local_ip6[4];
	u32 remote_port;
	u32 local_port;
	u32 data_meta;
	u64 flow_keys;
	u64 tstamp;
	u32 wire_len;
	u32 gso_segs;
	u64 sk;
	u32 gso_size;
	u8 tstamp_type;
	u64 hwtstamp;
};

static void *(*const bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static s64 (*const bpf_map_update_elem)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static s64 (*const bpf_map_delete_elem)(void *map, const void *key) = (void *)3;
static u64 (*const bpf_ktime_get_ns)(void) = (void *)5;
static u32 (*const bpf_get_smp_processor_id)(void) = (void *)8;
static s64 (*const bpf_skb_store_bytes)(struct __sk_buff *skb, u32 off, const void *from, u32 len,
					u64 flags) = (void *)9;
static s64 (*const bpf_tail_call)(void *ctx, void *programs, u32 index) = (void *)12;
static s64 (*const bpf_clone_redirect)(struct __sk_buff *skb, u32 ifindex, u64 flags) = (void *)13;
static s64 (*const bpf_skb_vlan_push)(struct __sk_buff *skb, be16 proto, u16 tci) = (void *)18;
static s64 (*const bpf_skb_vlan_pop)(struct __sk_buff *skb) = (void *)19;
static s64 (*const bpf_redirect)(u32 ifindex, u64 flags) = (void *)23;
static s64 (*const bpf_skb_load_bytes)(const struct __sk_buff *skb, u32 off, void *to, u32 len) = (void *)26;
static s64 (*const bpf_skb_change_tail)(struct __sk_buff *skb, u32 len, u64 flags) = (void *)38;
static s64 (*const bpf_skb_pull_data)(struct __sk_buff *skb, u32 len) = (void *)39;
static u64 (*const bpf_jiffies64)(void) = (void *)118;
static s64 (*const bpf_ringbuf_output)(void *ring, void *data, u64 size, u64 flags) = (void *)130;
static u64 (*const bpf_ringbuf_query)(void *ring, u64 what) = (void *)134;
static void *(*const bpf_map_lookup_percpu_elem)(void *map, const void *key, u32 cpu) = (void *)195;
static s64 (*const bpf_redirect_peer)(u32 ifindex, u64 flags) = (void *)155;
static s64 (*const bpf_for_each_map_elem)(void *map, void *callback, void *ctx, u64 flags) = (void *)164;
static s64 (*const bpf_loop)(u32 iterations, void *callback, void *ctx, u64 flags) = (void *)181;
