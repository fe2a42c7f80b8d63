//! Matrix products: NumPy's own BLAS on the operands' memory, into memory of ours.
//!
//! A product of two matrices is as large as it is, and NumPy would make it on fresh pages, which cost more to touch than to
//! fill. The result is a field of the pool, handed to NumPy as `out=`. Everything else about the product - order, threads,
//! bits - is NumPy's. Only where a long index is summed over, of which the matrices have a short row for each value, is it a launch:
//! of loops of ours, on all workers. Long rows are multiplied with a vector in `long_rows`,
//! short ones with a small matrix in `short_rows`.

use legate_kernels::product::{self, Item, long};
use legate_kernels::program::Loop;
use legate_runtime::view::{Axes, View};
use legate_runtime::{Operand, Privilege, Work};
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use smallvec::{SmallVec, smallvec};

use crate::array::{Shape, deferred};
use crate::dtypes::Native;
use crate::events::Mood;
use crate::host;
use crate::numpy_api;
use crate::ops::{create, long_rows, short_rows, stacks, vectors};
use crate::report::How;
use crate::resident;
use crate::state::{Shim, array_functions, methods, shim};
use crate::storage::{Purpose, Storage};
use crate::task::{Product, Task};
use crate::ufuncs;
use crate::values::{Kind, Value};

/// Enters this file's function for that of the host NumPy.
pub(crate) fn register(numpy: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = numpy.py();
    array_functions(py).set_item(numpy.getattr("dot")?, wrap_pyfunction!(dot, py)?)?;
    methods(py).set_item("dot", wrap_pyfunction!(dot, py)?)
}

/// `numpy.dot`.
#[pyfunction]
#[pyo3(signature = (*args, **kwargs))]
fn dot<'py>(args: &Bound<'py, PyTuple>, kwargs: Option<&Bound<'py, PyDict>>) -> PyResult<Bound<'py, PyAny>> {
    let py = args.py();
    let shim = shim(py)?;
    let function = shim.host(py, "dot")?;
    if let Some((left, right)) = vectors::pair(args, kwargs)? {
        if let Some(pair) = resident::flat_pair(&left, &right) {
            return function.call1(pair);
        }
        if let Some(product) = vectors::product(shim, &left, &right, Some("dot"))? {
            return Ok(product);
        }
        if let Some(product) = matrices(shim, &function, &left, &right, "dot")? {
            return Ok(product);
        }
    }
    host::call(&function, args, kwargs, "dot")
}

/// The product that a call of a ufunc of NumPy's with two operands asks for; `None` for other ufuncs and what is left to the host.
pub(crate) fn by_ufunc<'py>(
    shim: &Shim,
    ufunc: &Bound<'py, PyAny>,
    operands: &[&Bound<'py, PyAny>],
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let [left, right] = operands else { return Ok(None) };
    match ufuncs::ufunc_name(shim, ufunc)? {
        "matmul" => match vectors::product(shim, left, right, Some("matmul"))? {
            None => match matrices(shim, ufunc, left, right, "matmul")? {
                None if shim.shards > 1 => stacks::product(shim, left, right),
                product => Ok(product),
            },
            product => Ok(product),
        },
        "matvec" if shim.shards > 1 && matrix(left).is_some() && matrix(right).is_none() => {
            shared_out(left.py(), shim, left, right, "matvec")
        }
        _ => Ok(None),
    }
}

/// Rows, columns and dtype of a two-dimensional operand.
fn matrix<'py>(operand: &Bound<'py, PyAny>) -> Option<(usize, usize, Bound<'py, PyAny>)> {
    let py = operand.py();
    let array = match deferred(operand) {
        Some(array) => array.get().phantom(py),
        None if numpy_api::is_exact_array(operand) => operand.clone(),
        None => return None,
    };
    match numpy_api::geometry(&array).shape {
        [rows, columns] => Some((*rows as usize, *columns as usize, numpy_api::descr(&array))),
        _ => None,
    }
}

/// The product of two matrices of one BLAS type whose result is large, or that sums over a long index; `None` for anything else.
/// Floating-point events are told in the name given.
pub(crate) fn matrices<'py>(
    shim: &Shim,
    function: &Bound<'py, PyAny>,
    left: &Bound<'py, PyAny>,
    right: &Bound<'py, PyAny>,
    told: &'static str,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = left.py();
    if shim.shards > 1 {
        return shared_out(py, shim, left, right, told);
    }
    if let Some(product) = vectors::with_rows(shim, left, right, told)? {
        return Ok(Some(product));
    }
    for own in [long_rows::product, short_rows::product] {
        if let Some(product) = own(shim, left, right, told)? {
            return Ok(Some(product));
        }
    }
    if deferred(left).is_some() && deferred(right).is_some() {
        let product = shared_out(py, shim, left, right, told)?;
        if product.is_some() {
            return Ok(product);
        }
    }
    let (Some((rows, inner, descr)), Some((other, columns, other_descr))) = (matrix(left), matrix(right)) else {
        return Ok(None);
    };
    let blas = shim.dtypes.at(descr.as_ptr() as usize).is_some_and(|native| b"fdFD".contains(&native.letter));
    if !blas || inner != other || !descr.is(&other_descr) {
        return Ok(None);
    }
    let Some(result) = create::unfilled(shim, &[rows, columns], &descr, false)? else { return Ok(None) };
    let keywords = PyDict::new(py);
    keywords.set_item("out", &result)?;
    host::call(function, &PyTuple::new(py, [left, right])?, Some(&keywords), host::MATRIX_PRODUCT).map(Some)
}

/// Longest output that every shard makes a part of, all of which are then added up.
const ADDED_BYTES: usize = 4 << 20;

/// A matrix or vector as a product sees it: a view of a field, or nothing for other operands.
fn factor<'py>(shim: &Shim, operand: &Bound<'py, PyAny>) -> PyResult<Option<(Py<Storage>, Shape, Native)>> {
    let Some((_, Value::Array { storage, shape, native, lent: false })) = Value::of(shim, operand)? else {
        return Ok(None);
    };
    let blas = b"fdFD".contains(&native.letter) && (1..=2).contains(&shape.shape.len());
    Ok((blas && shape.size() > 0).then_some((storage, shape, native)))
}

/// How a product is shared out by the index that it sums over.
struct Summed {
    /// Rows of the left matrix, summed index, columns of the right one.
    lengths: [usize; 3],
    /// Byte strides: left along rows and sum, right along sum and columns.
    strides: [isize; 4],
    offsets: [isize; 2],
    native: Native,
}

impl Summed {
    /// The type of elements, if both matrices are short rows one behind the other, of so few elements that loops of ours multiply
    /// them.
    fn narrow(&self) -> Option<Item> {
        let [height, depth, width] = self.lengths;
        let [left_row, left_sum, right_sum, right_column] = self.strides;
        let item = long_rows::item(self.native.letter)?;
        let size = self.native.item_bytes as isize;
        let is_short = |count: usize, stride: isize, step: isize| count == 1 || stride.abs() < step.abs();
        let fits = is_short(height, left_row, left_sum) && is_short(width, right_column, right_sum);
        let aligned = self.strides.iter().chain(&self.offsets).all(|bytes| bytes % size == 0);
        let is_long = depth >= LONG * (height + width);
        (fits && aligned && is_long && product::is_narrow(height, width)).then_some(item)
    }

    /// The type of elements, if the right operand is a vector and the left one a large matrix of long rows, which a loop of ours
    /// multiplies.
    fn long(&self) -> Option<Item> {
        let [height, depth, width] = self.lengths;
        let [left_row, left_sum, right_sum, _] = self.strides;
        let size = self.native.item_bytes as isize;
        let fits = width == 1 && left_sum == size && right_sum == size && left_row % size == 0;
        let aligned = self.offsets.iter().all(|bytes| bytes % size == 0);
        let item = long_rows::item(self.native.letter)?;
        (fits && aligned && long::is_long(height, depth, self.native.item_bytes)).then_some(item)
    }
}

/// Times that a summed index must be as long as the short rows.
const LONG: usize = 4;

/// The product of matrices or vectors that live on several shards: each makes the rows of the result whose rows of the left matrix
/// it has; or, where the summed index is what is shared out, a part of all of it. On one shard the second kind only, of short rows.
/// `None` for what is left to the host.
pub(crate) fn shared_out<'py>(
    py: Python<'py>,
    shim: &Shim,
    left: &Bound<'py, PyAny>,
    right: &Bound<'py, PyAny>,
    told: &'static str,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let (Some((left, one, native)), Some((right, other, same))) = (factor(shim, left)?, factor(shim, right)?) else {
        return Ok(None);
    };
    let last = one.shape.len() - 1;
    let (depth, left_sum) = (one.shape[last], one.strides[last]);
    let (height, left_row) = if last == 1 { (one.shape[0], one.strides[0]) } else { (1, 0) };
    let (width, right_column) = if other.shape.len() == 2 { (other.shape[1], other.strides[1]) } else { (1, 0) };
    let right_sum = other.strides[0];
    if native.letter != same.letter || other.shape[0] != depth || height * depth * width < shim.settings.min_chunk {
        return Ok(None);
    }
    let by_sum = (height == 1 || left_sum.abs() > left_row.abs()) && height * width * native.item_bytes <= ADDED_BYTES;
    let summed = Summed {
        lengths: [height, depth, width],
        strides: [left_row, left_sum, right_sum, right_column],
        offsets: [one.offset, other.offset],
        native,
    };
    let narrow = if by_sum { summed.narrow() } else { None };
    if shim.shards == 1 && (narrow.is_none() || depth * (height + width) < shim.settings.min_chunk) {
        return Ok(None);
    }
    let mood = shim.origins.mood(py)?;
    let types: SmallVec<[Kind; 3]> = smallvec![Kind::Strong(one.descr), Kind::Strong(one.descr)];
    let Some(kernel) = multiplier(shim, py, native)? else { return Ok(None) };
    let Some(adder) = ufuncs::resolve(shim, &shim.host(py, "add")?, types)? else { return Ok(None) };
    if mood == Mood::Host {
        return Ok(None);
    }
    let item = native.item_bytes as isize;
    let (out_row, out_column) = (width as isize * item, item);
    let mut lengths: Axes<usize> = smallvec![];
    let mut strides: Axes<isize> = smallvec![];
    if last == 1 {
        lengths.push(height);
        strides.push(out_row);
    }
    if other.shape.len() == 2 {
        lengths.push(width);
        strides.push(out_column);
    }
    let result = ufuncs::fresh(py, shim, &lengths, &strides, native)?;
    let view = |offset: isize, strides: [isize; 3]| {
        let [row, sum, column] = strides;
        let strides = if by_sum { smallvec![sum, row, column] } else { smallvec![row, sum, column] };
        View { offset, strides, item_bytes: native.item_bytes }
    };
    let operand = |storage: &Py<Storage>, view: View, privilege| Operand {
        field: storage.get().field().clone(),
        view,
        privilege,
    };
    let operands: SmallVec<[Operand; 4]> = smallvec![
        operand(&result.array.get().storage(py), view(0, [out_row, 0, out_column]), Privilege::Write),
        operand(&left, view(one.offset, [left_row, left_sum, 0]), Privilege::Read),
        operand(&right, view(other.offset, [0, right_sum, right_column]), Privilege::Read),
    ];
    let task = Task::Product(Product {
        kernel,
        adder: adder.borrowed.clone(),
        lengths: [height, depth, width],
        strides: [left_row, left_sum, right_sum, right_column, out_row, out_column],
        stack: None,
        item_bytes: native.item_bytes,
        narrow,
        long: if by_sum { None } else { summed.long() },
    });
    let domain: Axes<usize> = if by_sum { smallvec![depth, height, width] } else { smallvec![height, depth, width] };
    issue(py, shim, told, domain, operands, task, mood)?;
    if lengths.is_empty() {
        let alias = result.array.get().alias(py, shim, Purpose::Read)?;
        return alias.get_item(PyTuple::empty(py)).map(Some);
    }
    Ok(Some(result.array.into_any()))
}

/// Issues a product; events are told in the name given.
pub(crate) fn issue(
    py: Python<'_>,
    shim: &Shim,
    told: &'static str,
    domain: Axes<usize>,
    operands: SmallVec<[Operand; 4]>,
    task: Task,
    mood: Mood,
) -> PyResult<()> {
    crate::shards::check_thread()?;
    crate::selection::before_writing(py, shim, &operands)?;
    let issued = shim.runtime.launch(told.into(), Work::Rows, domain, operands, task);
    let mut at_once = false;
    if let Mood::Warn(flags) | Mood::AtOnce(flags) = mood {
        at_once = matches!(mood, Mood::AtOnce(_));
        shim.origins.note(py, issued.sequence, flags, told, issued.sequence.saturating_sub(10_000));
    }
    shim.settle(py, issued, at_once)?;
    if shim.settings.report {
        shim.report.lock().note(py, told, How::Native, 0, 0.0);
    }
    Ok(())
}

/// NumPy's loop for matrices of a dtype.
pub(crate) fn multiplier(shim: &Shim, py: Python<'_>, native: Native) -> PyResult<Option<Loop>> {
    static KNOWN: Mutex<Vec<(u8, Loop)>> = Mutex::new(Vec::new());
    if let Some((_, kernel)) = KNOWN.lock().iter().find(|(letter, _)| *letter == native.letter) {
        return Ok(Some(kernel.clone()));
    }
    let matmul = shim.host(py, "matmul")?;
    let descr = shim.dtypes.descr(py, native.letter);
    let answer = matmul.call_method1("_resolve_dtypes_and_context", ((descr, descr, py.None()),))?;
    let Some((kernel, _)) = ufuncs::borrow(&matmul, &answer.get_item(1)?, "matmul")? else { return Ok(None) };
    KNOWN.lock().push((native.letter, kernel.clone()));
    Ok(Some(kernel))
}
