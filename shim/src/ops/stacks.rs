//! Products of stacks of matrices on several shards: `numpy.matmul` of more than two axes.
//!
//! Each shard multiplies the matrices of its part of the stack, by NumPy's own loop, matrix after matrix as NumPy does. A single
//! matrix on one side is used for all of the stack. Stacks whose leading axes are not one evenly spaced row of matrices, or that
//! broadcast otherwise, are left to the host.

use legate_runtime::view::{Axes, View};
use legate_runtime::{Operand, Privilege};
use pyo3::prelude::*;
use smallvec::{SmallVec, smallvec};

use crate::array::Shape;
use crate::dtypes::Native;
use crate::events::Mood;
use crate::ops::product;
use crate::state::Shim;
use crate::storage::Storage;
use crate::task::{Product, Task};
use crate::ufuncs;
use crate::values::{Kind, Value};

/// A stack of matrices: a view of a field.
struct Stack {
    storage: Py<Storage>,
    shape: Shape,
    native: Native,
    /// Bytes from one matrix to the next; 0 for a single one.
    apart: isize,
}

impl Stack {
    fn of<'py>(shim: &Shim, operand: &Bound<'py, PyAny>) -> PyResult<Option<Stack>> {
        let Some((_, Value::Array { storage, shape, native, lent: false })) = Value::of(shim, operand)? else {
            return Ok(None);
        };
        let axes = shape.shape.len();
        if !b"fdFD".contains(&native.letter) || axes < 2 || shape.size() == 0 {
            return Ok(None);
        }
        let mut apart = 0;
        for axis in (0..axes - 2).filter(|axis| shape.shape[*axis] > 1) {
            // Outer axes must go on where inner ones end.
            let inner: usize = shape.shape[axis + 1..axes - 2].iter().product();
            let next = (axis + 1..axes - 2).find(|inner| shape.shape[*inner] > 1);
            let along = next.map_or(shape.strides[axis], |_| shape.strides[axis] / inner as isize);
            if shape.strides[axis] != along * inner as isize || (apart != 0 && apart != along) || along <= 0 {
                return Ok(None);
            }
            apart = along;
        }
        Ok(Some(Stack { storage, shape, native, apart }))
    }

    /// Lengths of the axes before the matrices.
    fn leading(&self) -> &[usize] {
        &self.shape.shape[..self.shape.shape.len() - 2]
    }

    /// Rows and columns, and the bytes from one to the next.
    fn matrix(&self) -> ([usize; 2], [isize; 2]) {
        let axes = self.shape.shape.len();
        let (lengths, strides) = (&self.shape.shape, &self.shape.strides);
        ([lengths[axes - 2], lengths[axes - 1]], [strides[axes - 2], strides[axes - 1]])
    }

    fn operand(&self, strides: [isize; 3]) -> Operand {
        let [row, sum, column] = strides;
        let view = View {
            offset: self.shape.offset,
            strides: smallvec![self.apart, row, sum, column],
            item_bytes: self.native.item_bytes,
        };
        Operand { field: self.storage.get().field().clone(), view, privilege: Privilege::Read }
    }
}

/// The product of two stacks, or of one and a matrix; `None` for what is left to the host.
pub(crate) fn product<'py>(
    shim: &Shim,
    left: &Bound<'py, PyAny>,
    right: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = left.py();
    let (Some(left), Some(right)) = (Stack::of(shim, left)?, Stack::of(shim, right)?) else { return Ok(None) };
    let ([height, depth], [left_row, left_sum]) = left.matrix();
    let ([inner, width], [right_sum, right_column]) = right.matrix();
    let leading = if left.leading().is_empty() { right.leading() } else { left.leading() };
    let fits = |stack: &Stack| stack.leading().is_empty() || stack.leading() == leading;
    let count: usize = leading.iter().product();
    let native = left.native;
    if native.letter != right.native.letter || depth != inner || !fits(&left) || !fits(&right) || count < 2 {
        return Ok(None);
    }
    if count * height * depth * width < shim.settings.min_chunk {
        return Ok(None);
    }
    let mood = shim.origins.mood(py)?;
    let types: SmallVec<[Kind; 3]> = smallvec![Kind::Strong(left.shape.descr), Kind::Strong(left.shape.descr)];
    let Some(kernel) = product::multiplier(shim, py, native)? else { return Ok(None) };
    let Some(adder) = ufuncs::resolve(shim, &shim.host(py, "add")?, types)? else { return Ok(None) };
    if mood == Mood::Host {
        return Ok(None);
    }
    let mut lengths: Axes<usize> = leading.iter().copied().collect();
    lengths.extend([height, width]);
    let order: Axes<usize> = (0..lengths.len()).rev().collect();
    let strides = crate::values::ordered_strides(&lengths, &order, native.item_bytes);
    let (out_row, out_column) = ((width * native.item_bytes) as isize, native.item_bytes as isize);
    let out_apart = height as isize * out_row;
    let result = ufuncs::fresh(py, shim, &lengths, &strides, native)?;
    let output = Operand {
        field: result.array.get().storage(py).get().field().clone(),
        view: View { offset: 0, strides: smallvec![out_apart, out_row, 0, out_column], item_bytes: native.item_bytes },
        privilege: Privilege::Write,
    };
    let operands =
        smallvec![output, left.operand([left_row, left_sum, 0]), right.operand([0, right_sum, right_column]),];
    let task = Task::Product(Product {
        kernel,
        adder: adder.borrowed.clone(),
        lengths: [height, depth, width],
        strides: [left_row, left_sum, right_sum, right_column, out_row, out_column],
        stack: Some([left.apart, right.apart, out_apart]),
        item_bytes: native.item_bytes,
        narrow: None,
        long: None,
    });
    product::issue(py, shim, "matmul", smallvec![count, height, depth, width], operands, task, mood)?;
    Ok(Some(result.array.into_any()))
}
