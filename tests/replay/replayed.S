/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program in the recorded window. Assembly, without any library and at fixed addresses, so
 * that every assembler makes the same addresses of it: the recording stays true.
 * `outer` calls `middle`, which spends its time in `spin` (user) and in `ask` (system calls).
 */
        .text
        .globl  _start, outer, middle, spin, ask

        .type   _start, @function
_start: xor     %ebp, %ebp
        call    outer
        hlt
        .size   _start, . - _start

        .p2align 4
        .type   outer, @function
outer:  push    %rbp
        mov     %rsp, %rbp
1:      call    middle
        jmp     1b
        .size   outer, . - outer

        .p2align 4
        .type   middle, @function
middle: push    %rbp
        mov     %rsp, %rbp
        call    spin
        call    ask
        pop     %rbp
        ret
        .size   middle, . - middle

        .p2align 4
        .type   spin, @function
spin:   push    %rbp
        mov     %rsp, %rbp
        mov     $2000000, %ecx
1:      dec     %ecx
        jnz     1b
        pop     %rbp
        ret
        .size   spin, . - spin

        .p2align 4
        .type   ask, @function
ask:    push    %rbp
        mov     %rsp, %rbp
        push    %rbx
        mov     $4000, %ebx
1:      mov     $110, %eax      /* getppid */
        syscall
        dec     %ebx
        jnz     1b
        pop     %rbx
        pop     %rbp
        ret
        .size   ask, . - ask

        .section .note.GNU-stack, "", @progbits
