//! The user's line for the digest of what the shards do: file and number, found cheaply and shared.
//!
//! Asked for every launch and agreement where there are several shards. Where user code is innermost, what is known of its
//! instruction is remembered; else the frames are walked outward. Judges nobody: `intercept` does.

use std::sync::Arc;

use legate_runtime::digest::Place;
use pyo3::prelude::*;
use pyo3::types::PyAnyMethods;

use crate::frames::Remembered;
use crate::intercept;

static KNOWN: Remembered<Place> = Remembered::new();

/// Where the user's program is now; none outside of any.
pub(crate) fn current(py: Python<'_>) -> Option<Arc<Place>> {
    if !intercept::called_by_user(py) {
        return outward(py);
    }
    KNOWN.here(py, |_, _| Ok(outward(py))).ok().flatten()
}

/// The line of the innermost user code.
fn outward(py: Python<'_>) -> Option<Arc<Place>> {
    let frame = intercept::user_frame(py)?;
    let line = frame.getattr(pyo3::intern!(py, "f_lineno")).ok()?.extract().ok()?;
    let code = frame.getattr(pyo3::intern!(py, "f_code")).ok()?;
    let file: String = code.getattr(pyo3::intern!(py, "co_filename")).ok()?.extract().ok()?;
    Some(Arc::new(Place { file: file.into(), line }))
}
