//! Queries in spatial order, so that neighbouring ones find the same leaves in cache and can share a traversal.
//!
//! The key of a query is its path through a tree that halves the longest side of the points' bounding box again and again: on
//! cubes this is the Morton order, on stretched boxes it stays an order of near-cubes.

use super::arena::{Arena, MAX_DIMS};
use crate::element::Element;
use crate::parallel::Permutation;

/// Halvings of a key: one bit below `u32`, whose maximum stands for queries without a place.
const BITS: usize = 31;

/// Tables of one byte of a coordinate each: up to 32 bits an axis.
const BYTES: usize = 4;

/// Maps coordinates to keys.
struct Keys<T> {
    axes: Vec<Axis<T>>,
}

struct Axis<T> {
    low: T,
    /// Cells a unit of length.
    scale: T,
    /// How often the axis is halved.
    bits: u32,
    /// For each byte of the cell's number, lowest first: where its bits go in the key.
    spread: Vec<[u32; 256]>,
}

impl<T: Element> Keys<T> {
    fn new(arena: &Arena<T>) -> Self {
        let (low, high) = arena.bounds();
        let mut sides: Vec<f64> = low.iter().zip(&high).map(|(&low, &high)| to_f64(high) - to_f64(low)).collect();
        let places = places(&mut sides);
        let axes = places.iter().zip(low.iter().zip(&high)).map(|(places, (&low, &high))| {
            let side = to_f64(high) - to_f64(low);
            let cells = 2f64.powi(places.len() as i32) / side;
            let scale = if cells.is_finite() { T::from_f64(cells).expect("an element") } else { T::zero() };
            Axis { low, scale, bits: places.len() as u32, spread: spread(places) }
        });
        Self { axes: axes.collect() }
    }

    fn key(&self, query: &[T]) -> u32 {
        self.axes.iter().zip(query).fold(0, |key, (axis, &x)| {
            // Casts saturate: what lies outside the box goes to its edge.
            let cell: u64 = ((x - axis.low) * axis.scale).to_u64().unwrap_or(if x > axis.low { u64::MAX } else { 0 });
            let cell = cell.min((1 << axis.bits) - 1);
            axis.spread
                .iter()
                .enumerate()
                .fold(key, |key, (byte, spread)| key | spread[(cell >> (8 * byte)) as usize & 255])
        })
    }
}

fn to_f64<T: Element>(x: T) -> f64 {
    x.to_f64().expect("an element is an f64")
}

/// The places of each axis's bits in the key, highest first, where the longest of `sides` is halved each time.
fn places(sides: &mut [f64]) -> Vec<Vec<usize>> {
    let mut places = vec![Vec::new(); sides.len()];
    for place in (0..BITS).rev() {
        let longest =
            (1..sides.len()).fold(0, |longest, axis| if sides[axis] > sides[longest] { axis } else { longest });
        places[longest].push(place);
        sides[longest] /= 2.0;
    }
    places
}

/// The tables of an axis whose bits, highest first, go to `places`.
fn spread(places: &[usize]) -> Vec<[u32; 256]> {
    let place_of = |bit: usize| places.iter().rev().nth(bit).map_or(0, |&place| 1 << place);
    let bytes = places.len().div_ceil(8).min(BYTES);
    let table = |byte: usize| {
        std::array::from_fn(|value| {
            (0..8).filter(|bit| value >> bit & 1 == 1).fold(0, |key, bit| key | place_of(8 * byte + bit))
        })
    };
    (0..bytes).map(table).collect()
}

/// The order in which to search: finite queries in spatial order, then the others. `copy` copies a query.
pub(super) fn spatial<T: Element>(
    arena: &Arena<T>,
    queries: usize,
    copy: impl Fn(usize, &mut [T]) + Sync,
) -> Permutation {
    let keys = Keys::new(arena);
    Permutation::by_key(queries, |index| {
        let mut query = [T::zero(); MAX_DIMS];
        let query = &mut query[..arena.dims];
        copy(index, query);
        if query.iter().all(|x| x.is_finite()) { keys.key(query) } else { u32::MAX }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_of_a_cube_are_in_morton_order() {
        let arena = Arena {
            dims: 3,
            leaf: 16,
            rows: 1,
            points: 1,
            coordinates: vec![],
            ids: vec![0; 16],
            nodes: vec![],
            boxes: vec![0.0, 0.0, 0.0, 8.0, 8.0, 8.0],
            torus: None,
        };
        let keys = Keys::<f64>::new(&arena);
        let key = |x, y, z| keys.key(&[x, y, z]) >> (BITS - 3);
        for octant in 0..8u32 {
            let corner = [octant >> 2 & 1, octant >> 1 & 1, octant & 1].map(|bit| 1.0 + 6.0 * f64::from(bit));
            assert_eq!(key(corner[0], corner[1], corner[2]), octant);
        }
        assert_eq!(key(-1e300, 1e300, f64::MAX), 3, "outside goes to the edge");
    }

    #[test]
    fn stretched_boxes_are_cut_across_their_length() {
        assert_eq!(places(&mut [8.0, 1.0])[0][..4], [30, 29, 28, 27]);
    }
}
