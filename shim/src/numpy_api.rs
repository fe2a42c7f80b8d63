//! The host NumPy's array objects, read and made through its C interface.
//!
//! `PyArrayObject`'s fields and the numbers of the functions used here are part of NumPy's stable binary interface (the
//! same from 1.x to 2.x). Everything that looks into NumPy's memory is in this file; the rest of the shim gets slices
//! and [`Bound`] objects. It promises nothing about what arrays mean.
#![expect(unsafe_code, reason = "NumPy's C interface")]

mod owner;
pub(crate) use owner::let_own;

use std::ffi::{c_int, c_void};
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use pyo3::exceptions::PyImportError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods, PyType};

/// Flag bits of an array (`NPY_ARRAY_*`).
pub(crate) mod flag {
    /// Row-major without gaps.
    pub(crate) const C_CONTIGUOUS: i32 = 0x0001;
    /// Column-major without gaps.
    pub(crate) const F_CONTIGUOUS: i32 = 0x0002;
    /// Frees its memory when it ends, or seems to (see [`super::let_own`]).
    pub(crate) const OWNDATA: i32 = 0x0004;
    /// May be written.
    pub(crate) const WRITEABLE: i32 = 0x0400;
}

/// `PyArrayObject_fields`.
#[repr(C)]
struct ArrayFields {
    head: ffi::PyObject,
    data: *mut u8,
    ndim: c_int,
    shape: *mut isize,
    strides: *mut isize,
    base: *mut ffi::PyObject,
    descr: *mut ffi::PyObject,
    flags: c_int,
    weak_references: *mut ffi::PyObject,
    buffer_info: *mut c_void,
    memory_handler: *mut ffi::PyObject,
}

type NewFromDescr = unsafe extern "C" fn(
    *mut ffi::PyTypeObject,
    *mut ffi::PyObject,
    c_int,
    *const isize,
    *const isize,
    *mut c_void,
    c_int,
    *mut ffi::PyObject,
) -> *mut ffi::PyObject;
type ScalarOf = unsafe extern "C" fn(*mut c_void, *mut ffi::PyObject, *mut ffi::PyObject) -> *mut ffi::PyObject;
type CopyObject = unsafe extern "C" fn(*mut ffi::PyObject, *mut ffi::PyObject) -> c_int;
type SetBase = unsafe extern "C" fn(*mut ffi::PyObject, *mut ffi::PyObject) -> c_int;

type FunctionsOf = unsafe extern "C" fn(*mut ffi::PyObject) -> *const *const c_void;
/// A sort of a dtype: first byte, number of elements, an array that dtypes of numbers do not look at. Needs no GIL for numbers.
pub(crate) type SortFunction = unsafe extern "C" fn(*mut c_void, isize, *mut c_void) -> c_int;

/// The type of arrays, which calls and operators compare with first of all.
static ARRAY_TYPE: AtomicPtr<ffi::PyTypeObject> = AtomicPtr::new(std::ptr::null_mut());

struct Interface {
    generic_type: *mut ffi::PyTypeObject,
    new_from_descr: NewFromDescr,
    set_base: SetBase,
    scalar_of: ScalarOf,
    copy_object: CopyObject,
    functions_of: FunctionsOf,
}

// SAFETY: the pointers are to static objects and functions of NumPy, which stays loaded.
unsafe impl Send for Interface {}
// SAFETY: as above; nothing is written through them.
unsafe impl Sync for Interface {}

static INTERFACE: OnceLock<Interface> = OnceLock::new();

// Indices in NumPy's table of `PyArray_NewFromDescr`, `_Scalar`, `_CopyObject`, `_SetBaseObject` and `PyDataType_GetArrFuncs`.
const NEW_FROM_DESCR: usize = 94;
const SCALAR: usize = 60;
const COPY_OBJECT: usize = 84;
const SET_BASE_OBJECT: usize = 282;
const FUNCTIONS_OF: usize = 365;
/// Place of the default sort in `PyArray_ArrFuncs`.
const DEFAULT_SORT: usize = 33;

/// Finds NumPy's interface; called once, before anything else here.
pub(crate) fn connect(numpy: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = numpy.py();
    let umath = py.import("numpy._core._multiarray_umath")?;
    let capsule = umath.getattr("_ARRAY_API")?.cast_into::<PyCapsule>()?;
    let table = capsule.pointer_checked(None)?.as_ptr().cast_const().cast::<*const c_void>();
    ARRAY_TYPE.store(numpy.getattr("ndarray")?.as_ptr().cast(), Ordering::Relaxed);
    let generic_type = numpy.getattr("generic")?.as_ptr().cast();
    // SAFETY: NumPy's table has more than 370 entries, and these have had these numbers and signatures since 2.0.
    let interface = unsafe {
        let new_from_descr = *table.add(NEW_FROM_DESCR);
        let set_base = *table.add(SET_BASE_OBJECT);
        let scalar_of = *table.add(SCALAR);
        let copy_object = *table.add(COPY_OBJECT);
        let functions_of = *table.add(FUNCTIONS_OF);
        if [new_from_descr, set_base, scalar_of, copy_object, functions_of].iter().any(|function| function.is_null()) {
            return Err(PyImportError::new_err("this NumPy lacks the C interface that legate needs (2.3 or newer)"));
        }
        Interface {
            generic_type,
            new_from_descr: std::mem::transmute::<*const c_void, NewFromDescr>(new_from_descr),
            set_base: std::mem::transmute::<*const c_void, SetBase>(set_base),
            scalar_of: std::mem::transmute::<*const c_void, ScalarOf>(scalar_of),
            copy_object: std::mem::transmute::<*const c_void, CopyObject>(copy_object),
            functions_of: std::mem::transmute::<*const c_void, FunctionsOf>(functions_of),
        }
    };
    drop(INTERFACE.set(interface));
    Ok(())
}

fn interface() -> &'static Interface {
    INTERFACE.get().expect("numpy_api::connect runs when the module is loaded")
}

/// What NumPy sorts a native dtype of numbers with, where nothing else is asked for.
pub(crate) fn sort_of(descr: &Bound<'_, PyAny>) -> Option<SortFunction> {
    // SAFETY: the functions of a live dtype are a table that lives as long, whose entries have had their places since 1.7; the
    // dtypes of numbers are static.
    unsafe {
        let function = *(interface().functions_of)(descr.as_ptr()).add(DEFAULT_SORT);
        (!function.is_null()).then(|| std::mem::transmute::<*const c_void, SortFunction>(function))
    }
}

/// Whether an object is exactly a `numpy.ndarray` (no subclass).
pub(crate) fn is_exact_array(object: &Bound<'_, PyAny>) -> bool {
    // SAFETY: reading the type of a live object.
    unsafe { ffi::Py_TYPE(object.as_ptr()) == ARRAY_TYPE.load(Ordering::Relaxed) }
}

/// The number of elements of an object that is exactly a `numpy.ndarray`; `None` for any other.
///
/// # Safety
/// A live object.
#[inline(always)]
pub(crate) unsafe fn exact_array_size(object: *mut ffi::PyObject) -> Option<usize> {
    // SAFETY: the caller's promise; an array's memory starts with ArrayFields, whose shape has `ndim` entries.
    unsafe {
        if ffi::Py_TYPE(object) != ARRAY_TYPE.load(Ordering::Relaxed) {
            return None;
        }
        let fields = &*object.cast::<ArrayFields>();
        let length = |axis: i32| *fields.shape.add(axis as usize);
        let size = match fields.ndim {
            0 => 1,
            1 => length(0),
            axes => (1..axes).fold(length(0), |size, axis| size * length(axis)),
        };
        Some(size as usize)
    }
}

/// Whether an object is a `numpy.ndarray` or of a subclass.
pub(crate) fn is_array(object: &Bound<'_, PyAny>) -> bool {
    // SAFETY: both are live type objects.
    is_exact_array(object)
        || unsafe { ffi::PyType_IsSubtype(ffi::Py_TYPE(object.as_ptr()), ARRAY_TYPE.load(Ordering::Relaxed)) != 0 }
}

/// Whether an object is a NumPy scalar.
pub(crate) fn is_scalar(object: &Bound<'_, PyAny>) -> bool {
    // SAFETY: both are live type objects.
    unsafe { ffi::PyType_IsSubtype(ffi::Py_TYPE(object.as_ptr()), interface().generic_type) != 0 }
}

/// What an array object says of itself.
#[derive(Clone, Copy)]
pub(crate) struct Geometry<'a> {
    /// Address of the first element.
    pub(crate) data: usize,
    /// Lengths of the axes.
    pub(crate) shape: &'a [isize],
    /// Byte strides of the axes.
    pub(crate) strides: &'a [isize],
    /// Bits of [`flag`].
    pub(crate) flags: i32,
}

impl Geometry<'_> {
    /// Number of elements.
    pub(crate) fn size(&self) -> usize {
        self.shape.iter().product::<isize>() as usize
    }

    /// Lengths of the axes, as the runtime counts.
    pub(crate) fn lengths(&self) -> &[usize] {
        // SAFETY: both types have the same layout, and lengths are not negative.
        unsafe { std::slice::from_raw_parts(self.shape.as_ptr().cast(), self.shape.len()) }
    }

    /// Whether all bits of a flag are set.
    pub(crate) fn has(&self, flag: i32) -> bool {
        self.flags & flag == flag
    }
}

/// Lengths as NumPy counts.
pub(crate) fn signed(lengths: &[usize]) -> &[isize] {
    // SAFETY: both types have the same layout; no axis is as long as half of all addresses.
    unsafe { std::slice::from_raw_parts(lengths.as_ptr().cast(), lengths.len()) }
}

/// Looks into an array. The slices are good until the array's shape or strides are set or it dies.
pub(crate) fn geometry<'a>(array: &'a Bound<'_, PyAny>) -> Geometry<'a> {
    debug_assert!(is_array(array));
    // SAFETY: `array` is an ndarray, so its memory starts with ArrayFields; shape and strides have `ndim` entries. The
    // GIL is held and the array outlives the slices.
    unsafe {
        let fields = &*array.as_ptr().cast::<ArrayFields>();
        let axes = fields.ndim as usize;
        let slice = |pointer: *mut isize| {
            if axes == 0 { &[][..] } else { std::slice::from_raw_parts(pointer.cast_const(), axes) }
        };
        Geometry {
            data: fields.data as usize,
            shape: slice(fields.shape),
            strides: slice(fields.strides),
            flags: fields.flags,
        }
    }
}

/// The bytes that an array's elements lie in, counted from an address; empty for an array without elements.
pub(crate) fn bytes_of(array: &Bound<'_, PyAny>, start: usize) -> PyResult<Range<usize>> {
    let geometry = geometry(array);
    if geometry.size() == 0 {
        return Ok(0..0);
    }
    let item_bytes: usize = array.getattr("itemsize")?.extract()?;
    let (mut low, mut high) = (geometry.data - start, geometry.data - start + item_bytes);
    for (length, stride) in geometry.shape.iter().zip(geometry.strides) {
        let reach = ((length - 1) * stride).unsigned_abs();
        if *stride < 0 { low -= reach } else { high += reach }
    }
    Ok(low..high)
}

/// The array's dtype object.
pub(crate) fn descr<'py>(array: &Bound<'py, PyAny>) -> Bound<'py, PyAny> {
    // SAFETY: as in `geometry`; the descriptor of a live array is a live object, and a new reference is taken.
    unsafe {
        let fields = &*array.as_ptr().cast::<ArrayFields>();
        Bound::from_borrowed_ptr(array.py(), fields.descr)
    }
}

/// Address of the array's dtype object, as an identity.
pub(crate) fn descr_address(array: &Bound<'_, PyAny>) -> usize {
    // SAFETY: as in `geometry`.
    unsafe { (*array.as_ptr().cast::<ArrayFields>()).descr as usize }
}

/// The array's base object, if it has one.
pub(crate) fn base<'py>(array: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    // SAFETY: as in `descr`; a null base means none.
    unsafe {
        let fields = &*array.as_ptr().cast::<ArrayFields>();
        Bound::from_borrowed_ptr_or_opt(array.py(), fields.base)
    }
}

/// How many operands a ufunc reads.
pub(crate) fn inputs(ufunc: &Bound<'_, PyAny>) -> usize {
    // SAFETY: a `PyUFuncObject` begins with the object's head and this number; part of NumPy's stable binary interface.
    unsafe { *ufunc.as_ptr().byte_add(size_of::<ffi::PyObject>()).cast::<c_int>() as usize }
}

/// How many references an object has.
pub(crate) fn references(object: &Bound<'_, PyAny>) -> isize {
    // SAFETY: reading the count of a live object under the GIL.
    unsafe { ffi::Py_REFCNT(object.as_ptr()) }
}

/// A new array object over memory that `owner` keeps (it becomes the base).
///
/// Nothing is read or written here: the address may even be one that is never touched (see `array`).
pub(crate) fn array_over<'py>(
    descr: &Bound<'py, PyAny>,
    shape: &[isize],
    strides: &[isize],
    address: usize,
    writeable: bool,
    owner: Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = descr.py();
    let interface = interface();
    let flags = if writeable { flag::WRITEABLE } else { 0 };
    // SAFETY: the signature is NumPy's; the dtype's reference is stolen, so one is made; shape and strides have equal
    // lengths. `set_base` steals the owner's reference, also when it fails.
    unsafe {
        let array = (interface.new_from_descr)(
            ARRAY_TYPE.load(Ordering::Relaxed),
            descr.clone().into_ptr(),
            shape.len() as c_int,
            shape.as_ptr(),
            strides.as_ptr(),
            address as *mut c_void,
            flags,
            std::ptr::null_mut(),
        );
        let array = Bound::from_owned_ptr_or_err(py, array)?;
        if (interface.set_base)(array.as_ptr(), owner.into_ptr()) != 0 {
            return Err(PyErr::fetch(py));
        }
        Ok(array)
    }
}

/// `PyArray_Descr`, as far as it has been the same since NumPy 1.0.
#[repr(C)]
struct DescrHead {
    head: ffi::PyObject,
    scalar_type: *mut ffi::PyTypeObject,
    kind: u8,
    letter: u8,
    order: u8,
}

/// A numeric dtype in this machine's byte order.
#[derive(Clone, Copy)]
pub(crate) struct NumberType {
    scalar_type: *mut ffi::PyTypeObject,
    kind: u8,
    letter: u8,
}

/// An array's dtype, if it is numeric and in this machine's byte order.
#[inline]
pub(crate) fn number(array: &Bound<'_, PyAny>) -> Option<NumberType> {
    // SAFETY: as in `geometry`; an array's dtype is a live descriptor.
    let DescrHead { scalar_type, kind, letter, order, .. } =
        unsafe { &*(*array.as_ptr().cast::<ArrayFields>()).descr.cast::<DescrHead>() };
    (matches!(kind, b'b' | b'i' | b'u' | b'f' | b'c') && matches!(order, b'=' | b'|')).then_some(NumberType {
        scalar_type: *scalar_type,
        kind: *kind,
        letter: *letter,
    })
}

/// The NumPy scalar of an element of an array's (numeric) dtype: a new reference, or null with an exception set.
///
/// # Safety
/// `address` must be that of such an element, and nothing may be writing it.
#[inline]
pub(crate) unsafe fn scalar_at(array: &Bound<'_, PyAny>, address: usize) -> *mut ffi::PyObject {
    // SAFETY: the caller's promise; a numeric dtype needs no base object.
    unsafe {
        let descr = (*array.as_ptr().cast::<ArrayFields>()).descr;
        (interface().scalar_of)(address as *mut c_void, descr, std::ptr::null_mut())
    }
}

/// A NumPy scalar of a number of 8 bytes, as all of NumPy's scalars begin.
#[repr(C)]
struct Scalar {
    head: ffi::PyObject,
    value: [u8; 8],
}

/// Stores a number as an element, if that takes no conversion that could fail or warn.
///
/// # Safety
/// `address` must be that of an element of the array, whose dtype is `number`, and may be written; `value` is a live object.
#[inline]
pub(crate) unsafe fn store_number(number: NumberType, address: usize, value: *mut ffi::PyObject) -> bool {
    // SAFETY: the caller's promise. The C API reads exact floats and ints; a scalar of the dtype's own type holds its bytes.
    unsafe {
        let class = ffi::Py_TYPE(value);
        let is_double = number.kind == b'f' && number.letter == b'd';
        let is_long = number.kind == b'i' && number.letter == b'l';
        if is_double && class == &raw mut ffi::PyFloat_Type {
            (address as *mut f64).write_unaligned(ffi::PyFloat_AsDouble(value));
            return true;
        }
        if class == number.scalar_type && (is_double || is_long) {
            (address as *mut [u8; 8]).write_unaligned((*value.cast::<Scalar>()).value);
            return true;
        }
        if is_long && class == &raw mut ffi::PyLong_Type {
            let value = ffi::PyLong_AsLong(value);
            if value == -1 && !ffi::PyErr_Occurred().is_null() {
                ffi::PyErr_Clear();
                return false;
            }
            (address as *mut [u8; 8]).write_unaligned(value.to_ne_bytes());
            return true;
        }
        false
    }
}

/// Assigns an object to all of an array, as `array[...] = object` does: 0, or -1 with an exception set.
///
/// # Safety
/// `object` is a live object.
pub(crate) unsafe fn copy_into(array: &Bound<'_, PyAny>, object: *mut ffi::PyObject) -> c_int {
    // SAFETY: an array and a live object.
    unsafe { (interface().copy_object)(array.as_ptr(), object) }
}

/// The NumPy scalar of a numeric dtype at an address.
///
/// The address must be that of such an element, which nothing is writing.
pub(crate) fn scalar_of<'py>(descr: &Bound<'py, PyAny>, address: usize) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: callers pass the address of an element of a field all of whose writes are done; a numeric dtype needs no
    // base object.
    unsafe {
        let scalar = (interface().scalar_of)(address as *mut c_void, descr.as_ptr(), std::ptr::null_mut());
        Bound::from_owned_ptr_or_err(descr.py(), scalar)
    }
}

/// Python's iterator over a sequence by index: `object[0]`, `object[1]`, ... until IndexError.
pub(crate) fn sequence_iterator<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: a live object; a new reference or an error comes back.
    unsafe { Bound::from_owned_ptr_or_err(object.py(), ffi::PySeqIter_New(object.as_ptr())) }
}

/// Gives the object's type another metaclass, so that `type(x) == numpy.ndarray` can be answered.
///
/// `metaclass` must be a subclass of `type` that adds no storage.
pub(crate) fn set_metaclass(class: &Bound<'_, PyAny>, metaclass: &Bound<'_, PyAny>) {
    // SAFETY: a type's own type may be replaced by a subclass of `type` with the same layout; types live forever here.
    unsafe {
        ffi::Py_INCREF(metaclass.as_ptr());
        let head = class.as_ptr().cast::<*mut ffi::PyTypeObject>().add(1);
        *head = metaclass.as_ptr().cast();
    }
}

/// Makes an object an instance of another class.
///
/// # Safety
/// `class` must be a subclass of the object's class that adds no storage.
pub(crate) unsafe fn set_class(object: &Bound<'_, PyAny>, class: &Bound<'_, PyType>) {
    // SAFETY: the caller's promise; an object of a class made at run time holds a reference to it.
    unsafe {
        ffi::Py_INCREF(class.as_ptr());
        let place = object.as_ptr().cast::<*mut ffi::PyObject>().add(1);
        let before = std::mem::replace(&mut *place, class.as_ptr());
        ffi::Py_DECREF(before);
    }
}

/// Copies `bytes` bytes from one address to another.
///
/// # Safety
/// Both stretches must be valid, and not overlap.
pub(crate) unsafe fn copy_bytes(from: usize, to: usize, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { std::ptr::copy_nonoverlapping(from as *const u8, to as *mut u8, bytes) }
}
