/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Unwind tables: for every instruction of an object, how to get from its frame to the caller's.
 * User space (src/unwind) makes them from call frame information. The unwinder, which runs in the
 * kernel and, built from the same source, in user space, reads them.
 *
 * The text of an object is divided into pages of 64 KiB of its own address space (ELF vaddr). A
 * page has rows, ascending by pc_low; a row's rule holds from pc_low up to the next row's pc_low,
 * or to the end of the page. A page with rows has one at pc_low 0; a page without rows is not
 * covered at all. Registers have their DWARF numbers.
 */
#ifndef PYROMETER_ABI_UNWIND_H
#define PYROMETER_ABI_UNWIND_H

#include <linux/types.h>

#define PYRO_UNWIND_PAGE_SHIFT 16

struct pyro_unwind_row {
  __u16 pc_low; /* low 16 bits of the first address it holds for */
  __u16 rule;   /* index into the rules; 0 is always PYRO_RULE_NONE */
};

/* What to do with a frame; for the last five also how to find its CFA. The CFA (canonical frame
 * address) is the value of the caller's stack pointer before the call. */
enum pyro_rule_kind {
  PYRO_RULE_NONE,        /* no call frame information covers it: a frame pointer may help */
  PYRO_RULE_END,         /* the return address is undefined: this frame is the outermost */
  PYRO_RULE_SIGNAL,      /* a signal frame: all registers are in what the kernel put at sp */
  PYRO_RULE_EXOTIC,      /* only user space can evaluate it: exotic rule number cfa_offset */
  PYRO_RULE_REGISTER,    /* CFA = register + cfa_offset */
  PYRO_RULE_DEREFERENCE, /* CFA = *(register + cfa_offset) + cfa_add */
  PYRO_RULE_PLT,         /* CFA = register + cfa_offset + ((pc & 15) >= cfa_add ? 8 : 0) */
  PYRO_RULE_LEAVING,     /* as PYRO_RULE_REGISTER, in a function that leaves its callers (libgcc's
                          * _Unwind_Resume) and before that overwrites what they have saved.
                          * It has saved the frame pointer in this row or an earlier one. So
                          * PYRO_SAVED_SAME means that it has restored it, and that its return
                          * address is where it is going: a landing pad, which follows no call */
  PYRO_RULE_SWITCHED,    /* as PYRO_RULE_REGISTER, of a frame on another stack, which may lie
                          * anywhere (Go's runtime.systemstack) */
  PYRO_RULE_KINDS
};

/* Where the caller's value of a register is. */
enum pyro_saved {
  PYRO_SAVED_LOST,        /* nowhere */
  PYRO_SAVED_SAME,        /* unchanged; for the return address (arm64): in the link register */
  PYRO_SAVED_AT_CFA,      /* *(CFA + offset) */
  PYRO_SAVED_AT_FP,       /* *(this frame's frame pointer + offset) */
  PYRO_SAVED_IN_REGISTER, /* in register `offset`; return address only */
};

/* Values of rbx_offset that are not offsets. */
#define PYRO_RBX_SAME 0
#define PYRO_RBX_LOST (-32768)

struct pyro_unwind_rule {
  __u8 kind;         /* enum pyro_rule_kind; without a CFA, at most cfa_offset has a meaning */
  __u8 cfa_register; /* if not sp, fp or rbx: known in the leaf only, but see pyro_register() */
  __u8 fp;           /* enum pyro_saved, of RBP or x29 */
  __u8 ra;           /* enum pyro_saved, of the return address */
  __s32 cfa_offset;
  __s16 cfa_add;
  __s16 fp_offset;
  __s16 ra_offset;
  __s16 rbx_offset; /* x86_64: RBX is at CFA + rbx_offset. One runtime routine that is not a leaf,
                     * ld.so's _dl_runtime_resolve, has its CFA in RBX. */
};

/* The kernel's copy of the tables. A mapping leads to its object's table, the table to a page by
 * the pc's ELF address, and the page to its rows: `count` of them in a chunk, from `first` on.
 * Chunks are made as needed, up to a budget, and hold rows of any objects. For each new one the
 * kernel waits until no program runs that could miss it (an RCU grace period, some 10 ms), hence
 * their size. */
#define PYRO_CHUNK_ROWS 65536 /* as many as pyro_table_page.first can tell apart */
#define PYRO_MAX_CHUNKS 1024
#define PYRO_MAX_TABLES 131072 /* 2,000 containers of 50 files; equal files share their pages */
#define PYRO_MAX_TABLE_PAGES 262144 /* 16 GiB of text */
#define PYRO_MAX_RULES 16384

/* Rules that always exist, with these numbers. */
#define PYRO_RULE_INDEX_NONE 0
#define PYRO_RULE_INDEX_EXOTIC 1

enum pyro_table_state {
  PYRO_TABLE_ABSENT, /* not there (yet) */
  PYRO_TABLE_EMPTY,  /* the object has no call frame information, only frame pointers help */
  PYRO_TABLE_SPARSE, /* loaded; covers so little of the object that the rest is taken for compiled
                      * code, which must have frame pointers */
  PYRO_TABLE_LOADED, /* loaded; what it does not cover was written by hand */
  PYRO_TABLE_UNREAD, /* the object's file could not be read, and is tried again much later */
};

struct pyro_object_table {
  __u32 state;           /* enum pyro_table_state; written last */
  __u32 first_text_page; /* number (ELF address >> PYRO_UNWIND_PAGE_SHIFT) of its first page */
  __u32 first_page;      /* index of that page in the pages */
  __u32 page_count;
};

/* Written as a whole (8 bytes at once), except for `used`: the unwinder sets it; user space clears
 * it and evicts pages where it stays clear. */
struct pyro_table_page {
  __u16 chunk; /* or PYRO_PAGE_EVICTED: user space loads the rows if `used` is set */
  __u16 first;
  __u16 count; /* 0: nothing in this page is covered */
  __u8 used;
  __u8 pad;
};

#define PYRO_PAGE_EVICTED 0xffff

struct pyro_unwind_chunk {
  struct pyro_unwind_row rows[PYRO_CHUNK_ROWS];
};

#endif
