//! x86-64 instructions as bytes: the few that code is made of.
//!
//! Where numbers come from: Intel's manual, volume 2: opcodes from the pages of each instruction, the EVEX prefix from section
//! 2.7. Displacements are given in four bytes, so that they need no scaling.

/// General registers by number.
pub(super) const RAX: u8 = 0;
pub(super) const RSI: u8 = 6;
pub(super) const RDI: u8 = 7;

/// `ret`.
pub(super) const RETURN: [u8; 1] = [0xc3];

/// How much of a vector register an instruction takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    /// The first element, or sixteen bytes.
    First,
    Half,
    Full,
}

/// Which elements an instruction works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mask {
    All,
    /// Those of k1; others become zero.
    Rest,
    /// Those of k1; others are left alone (as a store must).
    RestStored,
}

/// The last operand of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Register(u8),
    Memory {
        base: u8,
        /// Whether `rax` is added.
        indexed: bool,
        displacement: i32,
        /// One element for all.
        repeats: bool,
    },
}

/// An instruction on vectors: opcode map, mandatory prefix, and the opcode.
#[derive(Clone, Copy, Debug)]
pub(super) struct Opcode {
    map: u8,
    prefix: u8,
    wide: bool,
    code: u8,
}

/// The forms of an operation: on vectors of doubles and of singles, and on one of them.
macro_rules! float_opcodes {
    ($($name:ident $code:literal)*) => {$(
        pub(super) fn $name(item_bytes: usize, width: Width) -> Opcode {
            let wide = item_bytes == 8;
            let prefix = match (width, wide) {
                (Width::First, true) => 3,
                (Width::First, false) => 2,
                (_, true) => 1,
                (_, false) => 0,
            };
            Opcode { map: 1, prefix, wide, code: $code }
        }
    )*};
}

float_opcodes! {
    load 0x10
    store 0x11
    sqrt 0x51
    and_not 0x55
    xor 0x57
    add 0x58
    multiply 0x59
    subtract 0x5c
    divide 0x5e
}

/// Each element of a register from memory (`vbroadcastsd`, `vbroadcastss`).
pub(super) fn repeat(item_bytes: usize) -> Opcode {
    if item_bytes == 8 {
        Opcode { map: 2, prefix: 1, wide: true, code: 0x19 }
    } else {
        Opcode { map: 2, prefix: 1, wide: false, code: 0x18 }
    }
}

/// Each element from a general register (`vpbroadcastq`, `vpbroadcastd`).
pub(super) fn repeat_general(item_bytes: usize) -> Opcode {
    Opcode { map: 2, prefix: 1, wide: item_bytes == 8, code: 0x7c }
}

/// Elements in another order within each sixteen bytes (`vpermilpd`, `vpermilps`).
pub(super) fn permute_within(item_bytes: usize) -> Opcode {
    Opcode { map: 3, prefix: 1, wide: item_bytes == 8, code: if item_bytes == 8 { 0x05 } else { 0x04 } }
}

/// Doubles in another order within each half (`vpermpd`).
pub(super) const PERMUTE_DOUBLES: Opcode = Opcode { map: 3, prefix: 1, wide: true, code: 0x01 };

/// A half of a full register (`vextractf64x4`).
pub(super) const EXTRACT_HALF: Opcode = Opcode { map: 3, prefix: 1, wide: true, code: 0x1b };

/// A quarter of a full register or half of a half (`vextractf64x2`).
pub(super) const EXTRACT_QUARTER: Opcode = Opcode { map: 3, prefix: 1, wide: true, code: 0x19 };

/// Two registers side by side, moved down by some elements (`valignq`, `valignd`).
pub(super) fn align(item_bytes: usize) -> Opcode {
    Opcode { map: 3, prefix: 1, wide: item_bytes == 8, code: 0x03 }
}

/// Instructions, one after the other.
#[derive(Default)]
pub(super) struct Assembler {
    pub(super) bytes: Vec<u8>,
}

impl Assembler {
    /// An instruction on vectors: `target` and `first` are registers (0 where there is no `first`).
    pub(super) fn vector(&mut self, opcode: Opcode, width: Width, mask: Mask, target: u8, first: u8, last: Place) {
        let inverted = |bit: u8, place: u8| if bit == 0 { 1 << place } else { 0 };
        let (extended, index_or_high, repeats) = match last {
            Place::Register(register) => (register >> 3 & 1, register >> 4, false),
            Place::Memory { base, repeats, .. } => (base >> 3 & 1, 0, repeats),
        };
        let length = match width {
            Width::First => 0,
            Width::Half => 1,
            Width::Full => 2,
        };
        let (zero, selector) = match mask {
            Mask::All => (0, 0),
            Mask::Rest => (1, 1),
            Mask::RestStored => (0, 1),
        };
        self.bytes.extend([
            0x62,
            inverted(target >> 3 & 1, 7)
                | inverted(index_or_high, 6)
                | inverted(extended, 5)
                | inverted(target >> 4, 4)
                | opcode.map,
            u8::from(opcode.wide) << 7 | (!first & 15) << 3 | 4 | opcode.prefix,
            zero << 7 | length << 5 | u8::from(repeats) << 4 | inverted(first >> 4, 3) | selector,
            opcode.code,
        ]);
        match last {
            Place::Register(register) => self.bytes.push(0xc0 | (target & 7) << 3 | register & 7),
            Place::Memory { base, indexed, displacement, .. } => {
                let index = if indexed { RAX } else { 4 };
                self.bytes.extend([0x84 | (target & 7) << 3, index << 3 | base & 7]);
                self.bytes.extend(displacement.to_le_bytes());
            }
        }
    }

    /// The same, with a number at its end.
    pub(super) fn vector_with(
        &mut self,
        opcode: Opcode,
        width: Width,
        target: u8,
        first: u8,
        last: Place,
        immediate: u8,
    ) {
        self.vector(opcode, width, Mask::All, target, first, last);
        self.bytes.push(immediate);
    }

    /// `mov target, [rdi + displacement]`.
    pub(super) fn load_pointer(&mut self, target: u8, displacement: usize) {
        self.bytes.extend([0x48 | (target >> 3) << 2, 0x8b, 0x80 | (target & 7) << 3 | RDI]);
        self.bytes.extend((displacement as u32).to_le_bytes());
    }

    /// `mov rax, number`.
    pub(super) fn set_rax(&mut self, number: u64) {
        self.bytes.extend([0x48, 0xb8]);
        self.bytes.extend(number.to_le_bytes());
    }

    /// `add target, number`.
    pub(super) fn add_number(&mut self, target: u8, number: i32) {
        self.bytes.extend([0x48 | target >> 3, 0x81, 0xc0 | target & 7]);
        self.bytes.extend(number.to_le_bytes());
    }

    /// `mov target, number`.
    pub(super) fn set_number(&mut self, target: u8, number: i32) {
        self.bytes.extend([0x48 | target >> 3, 0xc7, 0xc0 | target & 7]);
        self.bytes.extend(number.to_le_bytes());
    }

    /// `cmp rax, rsi`.
    pub(super) fn compare_rax_rsi(&mut self) {
        self.bytes.extend([0x48, 0x39, 0xf0]);
    }

    /// `test target, target`.
    pub(super) fn test(&mut self, target: u8) {
        let extended = target >> 3;
        self.bytes.extend([0x48 | extended << 2 | extended, 0x85, 0xc0 | (target & 7) << 3 | target & 7]);
    }

    /// `push register`.
    pub(super) fn push(&mut self, register: u8) {
        if register >= 8 {
            self.bytes.push(0x41);
        }
        self.bytes.push(0x50 | register & 7);
    }

    /// `pop register`.
    pub(super) fn pop(&mut self, register: u8) {
        if register >= 8 {
            self.bytes.push(0x41);
        }
        self.bytes.push(0x58 | register & 7);
    }

    /// `kmovw k1, edx` or `kmovw k1, eax`.
    pub(super) fn set_mask(&mut self, from_rax: bool) {
        self.bytes.extend([0xc5, 0xf8, 0x92, if from_rax { 0xc8 } else { 0xca }]);
    }

    /// `kortestw k1, k1`.
    pub(super) fn test_mask(&mut self) {
        self.bytes.extend([0xc5, 0xf8, 0x98, 0xc9]);
    }

    /// `vzeroupper`, `ret`.
    pub(super) fn finish(&mut self) {
        self.bytes.extend([0xc5, 0xf8, 0x77]);
        self.bytes.extend(RETURN);
    }

    /// A jump back to `target` where the last comparison was below (else: where it was not zero).
    pub(super) fn jump_back(&mut self, target: usize, below: bool) {
        self.bytes.extend([0x0f, if below { 0x82 } else { 0x85 }]);
        let offset = target as i64 - (self.bytes.len() as i64 + 4);
        self.bytes.extend((offset as i32).to_le_bytes());
    }

    /// A jump ahead where the last result was zero, to a place that `land` gives.
    pub(super) fn jump_ahead_if_zero(&mut self) -> usize {
        self.bytes.extend([0x0f, 0x84, 0, 0, 0, 0]);
        self.bytes.len()
    }

    /// Here the jump that ended at `jump` goes.
    pub(super) fn land(&mut self, jump: usize) {
        let offset = (self.bytes.len() - jump) as i32;
        self.bytes[jump - 4..jump].copy_from_slice(&offset.to_le_bytes());
    }
}
