//! The legacy normal draw of `RandomState`: Marsaglia's polar method.
//!
//! An attempt reads two doubles; a point inside the unit circle gives two deviates, in NumPy's order. The deviate left
//! over from an odd number of values is the caller's to keep.

use super::attempt::Sampler;
use super::cursor::Cursor;
use super::fixed::Doubles;

/// Draws pairs of standard normal deviates.
pub(super) struct Polar {
    /// How a word becomes a double.
    pub(super) doubles: Doubles,
}

impl Polar {
    #[inline(always)]
    fn point(&self, first: u64, second: u64) -> (f64, f64, f64) {
        let x = 2.0 * self.doubles.of(first) - 1.0;
        let y = 2.0 * self.doubles.of(second) - 1.0;
        (x, y, x * x + y * y)
    }

    #[inline(always)]
    fn deviates(&self, x: f64, y: f64, square: f64, values: &mut [f64]) {
        let factor = (-2.0 * square.ln() / square).sqrt();
        values[0] = factor * y;
        values[1] = factor * x;
    }
}

#[inline(always)]
fn inside(square: f64) -> bool {
    square < 1.0 && square != 0.0
}

impl Sampler for Polar {
    type Unit = u64;
    type Value = f64;
    const VALUES: usize = 2;
    const UNITS: usize = 2;

    fn attempt(&self, cursor: &mut Cursor<u64>, values: &mut [f64]) -> usize {
        let first = cursor.next();
        let second = cursor.next();
        let (x, y, square) = self.point(first, second);
        if !inside(square) {
            return 0;
        }
        self.deviates(x, y, square, values);
        2
    }

    fn run(&self, units: &[u64], values: &mut [f64]) -> (usize, usize) {
        // Points are sieved first, without a branch, so that the logarithms run back to back.
        const GROUP: usize = 64;
        let mut made = 0;
        let pairs = units.as_chunks::<2>().0;
        for group in pairs.chunks(GROUP) {
            let mut points = [(0.0, 0.0, 0.0); GROUP];
            let mut kept = 0;
            for &[first, second] in group {
                let point = self.point(first, second);
                points[kept] = point;
                kept += usize::from(inside(point.2));
            }
            for &(x, y, square) in &points[..kept] {
                self.deviates(x, y, square, &mut values[made..made + 2]);
                made += 2;
            }
        }
        (2 * pairs.len(), made)
    }
}
