//! Values: what an operand of an operation is to a launch - a constant element, or a view of a field.
//!
//! Host operands are taken in here: one element becomes a constant, a small array is copied (a snapshot: what the user
//! does to it later must not change the result), a large one is lent for the length of the call, which then must wait.

use legate_kernels::program::Element;
use legate_runtime::view::{Axes, View};
use legate_runtime::{Operand, Privilege};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt, PySlice, PyTuple};

use crate::array::{DeferredArray, Shape, deferred};
use crate::dtypes::{Native, element};
use crate::future::future;
use crate::host;
use crate::mapped;
use crate::memory;
use crate::numpy_api::{self, flag};
use crate::state::Shim;
use crate::storage::Storage;
use crate::ufuncs;

/// Host operands of at most this many bytes are copied; larger ones make the operation finish at its line.
const SNAPSHOT_BYTES: usize = 1 << 20;

/// How an operand takes part in type resolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// An array or NumPy scalar with the dtype at this address.
    Strong(usize),
    /// A Python int.
    Int,
    /// A Python float.
    Float,
    /// A Python complex.
    Complex,
}

/// An operand before it becomes part of a launch.
pub(crate) enum Value<'py> {
    /// A Python number, typed by the other operands.
    Weak(Bound<'py, PyAny>),
    /// One element with its dtype; `axes` is the number of axes it has (a `(1, 1)` array has two).
    Constant {
        /// The element.
        element: Element,
        /// Its dtype.
        native: Native,
        /// Number of axes, all of length 1.
        axes: usize,
    },
    /// A view of a field.
    Array {
        /// Keeps the field.
        storage: Py<Storage>,
        /// The view.
        shape: Shape,
        /// Its dtype.
        native: Native,
        /// Whether the field's memory is only lent: the operation must finish before it returns.
        lent: bool,
    },
}

impl<'py> Value<'py> {
    /// Takes in an operand; `None` when it is nothing that is computed natively.
    pub(crate) fn of(shim: &Shim, object: &Bound<'py, PyAny>) -> PyResult<Option<(Kind, Value<'py>)>> {
        let py = object.py();
        if let Some(array) = deferred(object) {
            return Ok(Value::of_deferred(py, shim, array));
        }
        if object.is_exact_instance_of::<PyFloat>() {
            return Ok(Some((Kind::Float, Value::Weak(object.clone()))));
        }
        if object.is_exact_instance_of::<PyInt>() {
            return Ok(Some((Kind::Int, Value::Weak(object.clone()))));
        }
        if object.is_exact_instance_of::<PyComplex>() {
            return Ok(Some((Kind::Complex, Value::Weak(object.clone()))));
        }
        if let Some(future) = future(object) {
            return future.get().operand(py, shim);
        }
        if object.is_exact_instance_of::<PyBool>() || numpy_api::is_scalar(object) {
            let array = shim.host(py, "asarray")?.call1((object,))?;
            return Value::of_host(shim, &array);
        }
        if mapped::is_read_as_array(object) {
            return Value::of_host(shim, object);
        }
        Ok(None)
    }

    /// Takes in what is assigned to elements of a type, with its own type; `None` when it is for the host, as where dropping an
    /// imaginary part warns, with a class of NumPy's own.
    pub(crate) fn assigned(
        shim: &Shim,
        object: &Bound<'py, PyAny>,
        native: Native,
    ) -> PyResult<Option<(Value<'py>, Native)>> {
        let Some((kind, value)) = Value::of(shim, object)? else { return Ok(None) };
        let (value, from) = match (kind, value) {
            (Kind::Int | Kind::Float | Kind::Complex, Value::Weak(number)) => {
                let element = ufuncs::weak_element(shim, &number, native)?;
                (Value::Constant { element, native, axes: 0 }, native)
            }
            (Kind::Strong(address), value) => match shim.dtypes.at(address) {
                Some(from) => (value, from),
                None => return Ok(None),
            },
            (Kind::Int | Kind::Float | Kind::Complex, _) => return Ok(None),
        };
        // A fraction that is a scalar, or is to be one, goes by Python's whole numbers, and so is refused where one does not fit.
        let to_whole = from.kind == b'f' && matches!(native.kind, b'i' | b'u');
        let is_scalar = to_whole && (numpy_api::is_scalar(object) || future(object).is_some());
        if is_scalar && !holds(native, object.extract()?) {
            return Ok(None);
        }
        Ok((from.kind != b'c' || native.kind == b'c').then_some((value, from)))
    }

    /// A deferred array's view.
    pub(crate) fn of_deferred(
        py: Python<'py>,
        shim: &Shim,
        array: &Bound<'py, DeferredArray>,
    ) -> Option<(Kind, Value<'py>)> {
        let shape = array.get().describe(py);
        let native = shim.dtypes.at(shape.descr)?;
        let kind = Kind::Strong(shape.descr);
        Some((kind, Value::Array { storage: array.get().storage(py), shape, native, lent: false }))
    }

    /// A host array, taken in.
    fn of_host(shim: &Shim, array: &Bound<'py, PyAny>) -> PyResult<Option<(Kind, Value<'py>)>> {
        let py = array.py();
        let address = numpy_api::descr_address(array);
        let Some(native) = shim.dtypes.at(address) else { return Ok(None) };
        let geometry = numpy_api::geometry(array);
        let kind = Kind::Strong(address);
        if geometry.size() == 1 {
            let element = element(&memory::bytes_at(geometry.data, native.item_bytes));
            return Ok(Some((kind, Value::Constant { element, native, axes: geometry.shape.len() })));
        }
        if geometry.size() == 0 {
            return Ok(None);
        }
        let small = geometry.size() * native.item_bytes <= SNAPSHOT_BYTES;
        let taken = if small {
            host::over_memory(shim, &snapshot(shim, array)?)?
        } else {
            // The program may change it at any time.
            let taken = host::over_memory(shim, array)?;
            taken.get().storage(py).get().field().pin();
            taken
        };
        let shape = taken.get().describe(py);
        Ok(Some((kind, Value::Array { storage: taken.get().storage(py), shape, native, lent: !small })))
    }

    /// Lengths of the value's axes.
    pub(crate) fn shape(&self) -> Axes<usize> {
        match self {
            Value::Weak(_) => Axes::new(),
            Value::Constant { axes, .. } => (0..*axes).map(|_| 1).collect(),
            Value::Array { shape, .. } => Axes::from_slice(&shape.shape),
        }
    }

    /// Byte strides along the axes of a result of `shape`, which the value broadcasts to.
    pub(crate) fn strides_for(&self, shape: &[usize]) -> Axes<isize> {
        match self {
            Value::Weak(_) | Value::Constant { .. } => Axes::from_elem(0, shape.len()),
            Value::Array { shape: own, .. } if *own.shape == *shape && !shape.contains(&1) => {
                Axes::from_slice(&own.strides)
            }
            Value::Array { shape: own, .. } => {
                let missing = shape.len() - own.shape.len();
                let stride = |axis: usize| match axis.checked_sub(missing) {
                    Some(axis) if own.shape[axis] != 1 => own.strides[axis],
                    Some(_) | None => 0,
                };
                (0..shape.len()).map(stride).collect()
            }
        }
    }

    /// Whether it is a view of a field.
    pub(crate) fn is_array(&self) -> bool {
        matches!(self, Value::Array { .. })
    }

    /// The same value once more.
    pub(crate) fn again(&self, py: Python<'py>) -> Value<'py> {
        match self {
            Value::Weak(number) => Value::Weak(number.clone()),
            Value::Constant { element, native, axes } => {
                Value::Constant { element: *element, native: *native, axes: *axes }
            }
            Value::Array { storage, shape, native, lent } => {
                Value::Array { storage: storage.clone_ref(py), shape: shape.clone(), native: *native, lent: *lent }
            }
        }
    }

    /// Whether using the value obliges to finish at this line.
    pub(crate) fn is_lent(&self) -> bool {
        matches!(self, Value::Array { lent: true, .. })
    }
}

/// Whether a type of whole numbers has that of a fraction.
fn holds(native: Native, fraction: f64) -> bool {
    let bits = native.item_bytes as i32 * 8;
    let (least, end) =
        if native.kind == b'u' { (0.0, 2f64.powi(bits)) } else { (-2f64.powi(bits - 1), 2f64.powi(bits - 1)) };
    (least..end).contains(&fraction.trunc())
}

/// A copy of a host array, ordered as it is; its axes that repeat their elements do so in the copy.
fn snapshot<'py>(shim: &Shim, array: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = array.py();
    let geometry = numpy_api::geometry(array);
    let repeats = |axis: usize| geometry.strides[axis] == 0 && geometry.shape[axis] > 1;
    let axes = 0..geometry.shape.len();
    if !axes.clone().any(repeats) {
        return array.call_method1("copy", ("K",));
    }
    let once = axes.map(|axis| if repeats(axis) { PySlice::new(py, 0, 1, 1) } else { PySlice::full(py) });
    let copy = array.get_item(PyTuple::new(py, once)?)?.call_method1("copy", ("K",))?;
    shim.host(py, "broadcast_to")?.call1((copy, PyTuple::new(py, geometry.shape)?))
}

/// The shape that shapes broadcast to; `None` when they do not.
pub(crate) fn broadcast(shapes: &[Axes<usize>]) -> Option<Axes<usize>> {
    let axes = shapes.iter().map(|shape| shape.len()).max().unwrap_or(0);
    let mut result: Axes<usize> = Axes::from_elem(1, axes);
    for shape in shapes {
        let missing = axes - shape.len();
        for (axis, length) in shape.iter().enumerate() {
            let known = &mut result[missing + axis];
            if *known == 1 {
                *known = *length;
            } else if *length != 1 && *length != *known {
                return None;
            }
        }
    }
    Some(result)
}

/// The axes that are not of length 1.
pub(crate) fn long_axes(shape: &[usize]) -> Axes<usize> {
    let mut axes = Axes::new();
    for (axis, length) in shape.iter().enumerate() {
        if *length != 1 {
            axes.push(axis);
        }
    }
    axes
}

/// Whether a shape broadcasts to another one.
pub(crate) fn broadcasts_to(lengths: &[usize], shape: &[usize]) -> bool {
    let fits = |(length, wanted): (&usize, &usize)| *length == 1 || length == wanted;
    lengths.len() <= shape.len() && lengths.iter().rev().zip(shape.iter().rev()).all(fits)
}

/// The order in which a launch walks a result's axes: longest stride of the written view first, axes of length 1 left
/// out, and the axes along which the written view goes backwards.
pub(crate) struct Walk {
    axes: Axes<usize>,
    backwards: Axes<bool>,
    shape: Axes<usize>,
}

impl Walk {
    /// The walk of a written view.
    pub(crate) fn of(shape: &[usize], strides: &[isize]) -> Walk {
        let mut axes = long_axes(shape);
        let reach = |axis: &usize| strides[*axis].unsigned_abs();
        if !axes.is_sorted_by(|outer, inner| reach(outer) >= reach(inner)) {
            axes.sort_by_key(|axis| std::cmp::Reverse(reach(axis)));
        }
        let mut backwards = Axes::from_elem(false, axes.len());
        for (axis, backwards) in axes.iter().zip(&mut backwards) {
            *backwards = strides[*axis] < 0;
        }
        Walk { axes, backwards, shape: Axes::from_slice(shape) }
    }

    /// A walk with the axes in a given order, none backwards.
    pub(crate) fn in_order(shape: &[usize], axes: Axes<usize>) -> Walk {
        let backwards = Axes::from_elem(false, axes.len());
        Walk { axes, backwards, shape: Axes::from_slice(shape) }
    }

    /// Where an axis of the result is among the launch's.
    pub(crate) fn position(&self, axis: usize) -> Option<usize> {
        self.axes.iter().position(|known| *known == axis)
    }

    /// Lengths of the launch's axes.
    pub(crate) fn domain(&self) -> Axes<usize> {
        let mut lengths = Axes::from_elem(0, self.axes.len());
        for (axis, length) in self.axes.iter().zip(&mut lengths) {
            *length = self.shape[*axis];
        }
        lengths
    }

    /// A view with these strides over the result's axes, along the walk.
    pub(crate) fn view(&self, offset: isize, strides: &[isize], item_bytes: usize) -> View {
        let mut start = offset;
        let mut along = Axes::from_elem(0, self.axes.len());
        for ((axis, backwards), along) in self.axes.iter().zip(&self.backwards).zip(&mut along) {
            let stride = strides[*axis];
            if *backwards {
                start += (self.shape[*axis] as isize - 1) * stride;
                *along = -stride;
            } else {
                *along = stride;
            }
        }
        View { offset: start, strides: along, item_bytes }
    }

    /// An operand of a launch.
    pub(crate) fn operand(
        &self,
        storage: &Py<Storage>,
        offset: isize,
        strides: &[isize],
        item_bytes: usize,
        privilege: Privilege,
    ) -> Operand {
        Operand { field: storage.get().field().clone(), view: self.view(offset, strides, item_bytes), privilege }
    }
}

/// Byte strides of a fresh result in the order that NumPy's iterator gives it ("K").
pub(crate) fn fresh_strides(shape: &[usize], operands: &[Axes<isize>], item_bytes: usize) -> Axes<isize> {
    ordered_strides(shape, &iteration_order(shape, operands), item_bytes)
}

/// Byte strides without gaps, the axes in the given order, innermost first.
pub(crate) fn ordered_strides(shape: &[usize], order: &[usize], item_bytes: usize) -> Axes<isize> {
    let mut strides: Axes<isize> = Axes::from_elem(0, shape.len());
    let mut next = item_bytes as isize;
    for axis in order {
        strides[*axis] = next;
        next *= shape[*axis] as isize;
    }
    strides
}

/// Byte strides with 0 for the axes of one element.
pub(crate) fn moving_strides(lengths: &[usize], strides: &[isize]) -> Axes<isize> {
    let mut moving = Axes::from_slice(strides);
    for (stride, _) in moving.iter_mut().zip(lengths).filter(|(_, length)| **length == 1) {
        *stride = 0;
    }
    moving
}

/// Byte strides of a copy of an array, in an order as NumPy names it: 'C', 'F', 'A' or 'K'; `None` for any other name.
///
/// Unlike the iterator's order, 'K' sorts by stride alone: an axis that repeats its elements comes innermost.
pub(crate) fn copied_strides(own: &Shape, order: &str, item_bytes: usize) -> Option<Axes<isize>> {
    let column_major: Axes<usize> = (0..own.shape.len()).collect();
    let mut row_major: Axes<usize> = column_major.iter().rev().copied().collect();
    let is_column_major = own.flags & flag::F_CONTIGUOUS != 0 && !own.is_c_contiguous();
    let order = match order {
        "F" => column_major,
        "A" | "K" if is_column_major => column_major,
        "C" | "A" => row_major,
        "K" if own.is_c_contiguous() => row_major,
        "K" => {
            row_major.sort_by_key(|axis| own.strides[*axis].unsigned_abs());
            row_major
        }
        _ => return None,
    };
    Some(ordered_strides(&own.shape, &order, item_bytes))
}

/// The order in which NumPy's iterator nests the axes, innermost first: sorted by the operands' strides, the first operand
/// that tells two axes apart deciding.
pub(crate) fn iteration_order(shape: &[usize], operands: &[Axes<isize>]) -> Axes<usize> {
    let axes = shape.len();
    let stride = |operand: &Axes<isize>, axis: usize| if shape[axis] == 1 { 0 } else { operand[axis].unsigned_abs() };
    // Innermost first, as NumPy keeps them; insertion sort with NumPy's treatment of ties and zero strides.
    let mut order: Axes<usize> = Axes::from_elem(0, axes);
    for (position, axis) in order.iter_mut().enumerate() {
        *axis = axes - 1 - position;
    }
    for start in 1..axes {
        let moving = order[start];
        let mut target = start;
        for position in (0..start).rev() {
            let other = order[position];
            let mut ambiguous = true;
            let mut should_swap = false;
            for operand in operands {
                let (mine, theirs) = (stride(operand, moving), stride(operand, other));
                if mine != 0 && theirs != 0 {
                    if theirs <= mine {
                        should_swap = false;
                    } else if ambiguous {
                        should_swap = true;
                    }
                    ambiguous = false;
                }
            }
            if !ambiguous {
                if should_swap {
                    target = position;
                } else {
                    break;
                }
            }
        }
        if target != start {
            let axis = order.remove(start);
            order.insert(target, axis);
        }
    }
    order
}
