//! Programs as text: the plan that `--show-plan` prints and tests compare.
//!
//! Promises that what a program computes can be read from its text, and that equal programs print the same text. Base
//! addresses and function pointers are not printed.

use std::fmt::{self, Display, Formatter};

use super::{Access, Arg, Element, Extreme, Memory, Pass, Program, Reducer, Seed, Split, Step};

impl Display for Program {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let split = match self.split {
            Split::Rows => "by rows".to_owned(),
            Split::Inner(axis) => format!("by inner axis {axis}"),
            Split::Whole => "whole".to_owned(),
        };
        writeln!(out, "program {} rows, {} buffers, cut {split}", self.rows, self.buffers)?;
        for (index, bytes) in self.slots.iter().enumerate() {
            writeln!(out, "  slot s{index}: {bytes} bytes a row")?;
        }
        for (index, constant) in self.constants.iter().enumerate() {
            writeln!(out, "  constant k{index}: {constant}")?;
        }
        for pass in &self.passes {
            write!(out, "{pass}")?;
        }
        Ok(())
    }
}

impl Display for Pass {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "  pass rows {}..{}", self.rows.start, self.rows.end)?;
        for length in &self.inner {
            write!(out, " x {length}")?;
        }
        writeln!(out)?;
        for step in &self.steps {
            write!(out, "    ")?;
            self.write_step(step, out)?;
            writeln!(out)?;
        }
        Ok(())
    }
}

impl Pass {
    fn write_step(&self, step: &Step, out: &mut Formatter<'_>) -> fmt::Result {
        match step {
            Step::Apply { kernel, inputs, outputs, .. } => {
                self.write_list(outputs, out)?;
                write!(out, " = {}(", kernel.name)?;
                self.write_list(inputs, out)?;
                write!(out, ")")
            }
            Step::Masked { mask, kernel, inputs, outputs, .. } => {
                self.write_list(outputs, out)?;
                write!(out, " = {}(", kernel.name)?;
                self.write_list(inputs, out)?;
                write!(out, ") where ")?;
                self.write_arg(*mask, out)
            }
            Step::Index { number, start, delta, output } => {
                self.write_arg(*output, out)?;
                write!(out, " = index {number:?} from {start} by {delta}")
            }
            Step::Reduce { reducer, seed, input, output, axes, .. } => {
                self.write_arg(Arg::Access(*output), out)?;
                write!(out, " = {reducer} over {axes} axes of ")?;
                self.write_arg(*input, out)?;
                write!(out, " from {seed}")
            }
            Step::Total { reducer, seed, input, total, .. } => {
                write!(out, "t{total} = {reducer} over all of ")?;
                self.write_arg(*input, out)?;
                write!(out, " from {seed}")
            }
            Step::Accumulate { kernel, seed, input, output, .. } => {
                self.write_arg(Arg::Access(*output), out)?;
                write!(out, " = {} accumulates ", kernel.name)?;
                self.write_arg(*input, out)?;
                write!(out, " from {seed}")
            }
        }
    }

    fn write_list(&self, args: &[Arg], out: &mut Formatter<'_>) -> fmt::Result {
        for (index, arg) in args.iter().enumerate() {
            if index > 0 {
                write!(out, ", ")?;
            }
            self.write_arg(*arg, out)?;
        }
        Ok(())
    }

    fn write_arg(&self, arg: Arg, out: &mut Formatter<'_>) -> fmt::Result {
        match arg {
            Arg::Register(index) => write!(out, "r{index}"),
            Arg::Access(index) => write!(out, "{}", self.accesses[index]),
        }
    }
}

impl Display for Access {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self.memory {
            Memory::Constant(index) => return write!(out, "k{index}"),
            Memory::Buffer(index) => write!(out, "b{index}")?,
            Memory::Slot(index) => write!(out, "s{index}")?,
        }
        write!(out, "[{:+} by {}", self.offset, self.row_stride)?;
        for stride in &self.inner_strides {
            write!(out, " {stride}")?;
        }
        write!(out, ": {}{}]", self.item_bytes, if self.aligned { "" } else { " unaligned" })
    }
}

impl Display for Reducer {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Reducer::Pairwise(float) => write!(out, "pairwise {float:?}"),
            Reducer::Fold(kernel) => write!(out, "fold {}", kernel.name),
            Reducer::ArgExtreme(Extreme::Min, number) => write!(out, "argmin {number:?}"),
            Reducer::ArgExtreme(Extreme::Max, number) => write!(out, "argmax {number:?}"),
        }
    }
}

impl Display for Seed {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Seed::First => write!(out, "the first"),
            Seed::Value(value) => write!(out, "{value}"),
        }
    }
}

/// Hexadecimal, most significant byte first, without leading zeros.
impl Display for Element {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "0x")?;
        let length = self.0.iter().rposition(|byte| *byte != 0).map_or(1, |last| last + 1);
        for (index, byte) in self.0[..length].iter().rev().enumerate() {
            if index == 0 {
                write!(out, "{byte:x}")?;
            } else {
                write!(out, "{byte:02x}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use smallvec::smallvec;

    use super::*;
    use crate::loops;

    #[test]
    fn a_program_reads_as_what_it_does() {
        let access = |memory, row_stride, inner_stride| Access {
            memory,
            offset: 16,
            row_stride,
            inner_strides: smallvec![inner_stride],
            item_bytes: 8,
            aligned: true,
        };
        let pass = Pass {
            rows: 1..9,
            inner: smallvec![4],
            accesses: vec![
                access(Memory::Buffer(0), 32, 8),
                access(Memory::Constant(0), 0, 0),
                access(Memory::Slot(0), 8, 0),
            ],
            registers: vec![8],
            steps: vec![
                Step::Apply {
                    kernel: loops::copy(8),
                    inputs: smallvec![Arg::Access(0)],
                    outputs: smallvec![Arg::Register(0)],
                    flags: 0,
                },
                Step::Reduce {
                    reducer: Reducer::Pairwise(crate::program::Float::F64),
                    seed: Seed::First,
                    input: Arg::Register(0),
                    output: 2,
                    axes: 1,
                    flags: 0,
                },
            ],
        };
        let mut one = Element([0; 32]);
        one.0[..8].copy_from_slice(&1.0_f64.to_le_bytes());
        let program = Program {
            rows: 10,
            buffers: 1,
            read_soon: Vec::new(),
            slots: vec![8],
            constants: vec![one],
            totals: Vec::new(),
            flags: 1,
            split: Split::Rows,
            passes: vec![pass],
        };
        let expected = "\
program 10 rows, 1 buffers, cut by rows
  slot s0: 8 bytes a row
  constant k0: 0x3ff0000000000000
  pass rows 1..9 x 4
    r0 = copy 8(b0[+16 by 32 8: 8])
    s0[+16 by 8 0: 8] = pairwise F64 over 1 axes of r0 from the first
";
        assert_eq!(program.to_string(), expected);
    }
}
