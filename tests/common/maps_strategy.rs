//! Random problems for kernel maps, small ones around every boundary.

use super::maps_case::{Data, Grads, Grid, MapsCase, MapsLayout, PARAMETERS};
use super::strides::Strides;
use super::threads;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use pullback::gaussian::{Centre, Path, Tuning};

/// Around the lengths of vectors, of rows and of whole windows.
pub const SIZES: [usize; 14] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 21, 25];

pub const CENTRES: [Centre; 8] = [
    Centre::Corner,
    Centre::Middle,
    Centre::Half,
    Centre::ShiftConvolution(2),
    Centre::ShiftConvolution(3),
    Centre::ShiftCorrelation(2),
    Centre::ShiftCorrelation(4),
    Centre::At(1.3, -0.7),
];

pub fn grids() -> impl Strategy<Value = Grid> {
    prop_oneof![6 => select(CENTRES.to_vec()).prop_map(Grid::Centre), 1 => Just(Grid::Given)]
}

pub fn windows() -> impl Strategy<Value = [usize; 2]> {
    let side = || select(SIZES.to_vec());
    prop_oneof![1 => side().prop_map(|k| [k, k]), 1 => [side(), side()]]
}

pub const PATHS: [Option<Path>; 3] = [None, Some(Path::Rows), Some(Path::Narrow)];

pub fn tunings() -> impl Strategy<Value = Tuning> {
    let switch = || option::of(any::<bool>());
    (switch(), switch(), switch(), select(PATHS.to_vec()), option::of(1usize..9))
        .prop_map(|(stream, parallel, mirror, path, tile)| Tuning { stream, parallel, tile, mirror, path })
}

/// Mostly standard layout.
pub fn strides(broadcast: bool) -> BoxedStrategy<Strides> {
    let mask = || prop_oneof![2 => Just(0), 1 => any::<u8>()];
    let any = (0usize..120, mask(), mask(), any::<u8>()).prop_map(move |(order, reversed, halved, axes)| Strides {
        order,
        reversed,
        halved,
        broadcast: if broadcast && axes < 32 { axes } else { 0 },
    });
    prop_oneof![4 => Just(Strides::default()), 1 => any].boxed()
}

fn layouts() -> impl Strategy<Value = MapsLayout> {
    let plain = || strides(false);
    (plain(), plain(), plain(), strides(true), plain(), plain()).prop_map(
        |(shapes, offsets, maps, grad_maps, grad_shapes, grad_offsets)| MapsLayout {
            shapes,
            offsets,
            maps,
            grad_maps,
            grad_shapes,
            grad_offsets,
        },
    )
}

pub fn maps() -> impl Strategy<Value = MapsCase> {
    let leading = prop_oneof![
        1 => Just(vec![]),
        3 => prop::collection::vec(0usize..20, 1),
        3 => prop::collection::vec(0usize..5, 2),
        1 => prop::collection::vec(0usize..3, 3),
    ];
    let numbers = (select(PARAMETERS.to_vec()), select(Data::ALL.to_vec()));
    let offsets = prop_oneof![2 => Just(None), 1 => (0.0f64..2.0).prop_map(Some)];
    let data = (offsets, select(Grads::ALL.to_vec()), any::<bool>(), any::<u64>());
    (leading, windows(), grids(), numbers, data, layouts(), tunings(), select(threads::COUNTS.to_vec())).prop_map(
        |(leading, window, grid, (parameters, data), (offsets, grads, double, seed), layout, tuning, threads)| {
            MapsCase { leading, window, grid, parameters, data, offsets, grads, double, layout, tuning, threads, seed }
        },
    )
}
