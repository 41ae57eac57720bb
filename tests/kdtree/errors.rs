//! Refusals: what they name and how they read.

use crate::common::neighbors::non_finite;
use crate::common::strides::{Strided, Strides};
use crate::common::threads;
use ndarray::{Array2, ArrayView2, Ix2, array, aview2};
use pullback::kdtree::{Builder, KdTree};
use pullback::{Error, Level};
use std::iter::repeat_n;

fn tree() -> KdTree<f32, 3> {
    KdTree::new(array![[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]].view()).unwrap()
}

#[test]
fn wrong_numbers_of_columns_are_refused() {
    for (rows, columns) in [0, 1, 4].into_iter().flat_map(|rows| [0, 1, 2, 4, 6].map(|columns| (rows, columns))) {
        let array = Array2::<f32>::zeros([rows, columns]);
        let error = |argument| Error::Shape { argument, found: vec![rows, columns], expected: vec![rows, 3] };
        assert_eq!(KdTree::<f32, 3>::new(array.view()).err(), Some(error("points")));
        assert_eq!(tree().knn(array.view(), 1).err(), Some(error("queries")));
    }
    let error = tree().knn(array![[0.0, 0.0]].view(), 1).err().unwrap();
    assert_eq!(error.to_string(), "queries has shape [1, 2], expected [1, 3]");
}

#[test]
fn dimensions_are_1_to_16() {
    fn refused<const D: usize>() -> String {
        let error = KdTree::<f64, D>::new(Array2::zeros([5, D]).view()).err().expect("so many are not supported");
        assert_eq!(error, Error::Dimensions { found: D, most: 16 });
        error.to_string()
    }
    assert_eq!(refused::<0>(), "0 dimensions are not supported, 1 to 16 are");
    assert_eq!(refused::<17>(), "17 dimensions are not supported, 1 to 16 are");
    refused::<64>();
}

/// The lower of two bad rows far apart is named, in the order of the array and not of its memory, by any number of
/// threads.
#[test]
fn the_lowest_bad_coordinate_is_named() {
    const ROWS: usize = 400_000;
    // Where two threads have half of the rows each, the higher of two mostly finds its bad row long before the lower.
    let rows = [0, 1, ROWS / 5 * 2, ROWS / 2 - 1, ROWS / 2, ROWS / 5 * 3, ROWS - 1];
    let pairs = (1..rows.len()).flat_map(|high| rows[..high].iter().map(move |&low| (low, rows[high])));
    let dense = pairs.map(|pair| (pair, Strides::default()));
    let layouts = [(1, 0, 0), (0, 1, 0), (0, 2, 0), (0, 0, 1)];
    let strided = layouts.map(|(order, reversed, halved)| {
        ((rows[2], rows[5]), Strides { order, reversed, halved, ..Strides::default() })
    });
    let again = repeat_n(((rows[2], rows[5]), Strides::default()), 30);
    let tree = tree();
    for ((low, high), strides) in dense.chain(strided).chain(again) {
        let mut array = Strided::new(Ix2(ROWS, 3), strides, || f32::MAX);
        let mut view = array.view_mut();
        (view[[low, 2]], view[[low, 1]], view[[high, 0]]) = (f32::NAN, f32::NEG_INFINITY, f32::INFINITY);
        let named = |argument| Some(Error::NonFinite { argument, position: vec![low, 1], value: "-inf".to_owned() });
        for count in threads::COUNTS {
            let view = array.view();
            let (built, found) = threads::with(count, || (KdTree::<f32, 3>::new(view).err(), tree.knn(view, 1).err()));
            assert_eq!((built, found), (named("points"), named("queries")), "{count} threads, {strides:?}");
        }
    }
}

#[test]
fn messages_name_the_coordinate() {
    for (value, word) in [(f64::NAN, "NaN"), (-f64::NAN, "NaN"), (f64::INFINITY, "inf"), (f64::NEG_INFINITY, "-inf")] {
        let mut points = Array2::zeros([20, 3]);
        points[[17, 2]] = value;
        let error = KdTree::<f64, 3>::new(points.view()).err().unwrap();
        assert_eq!(error.to_string(), format!("points[17, 2] = {word} is not finite"));
        assert_eq!(Some(error), non_finite("points", points.view()));
        let error = KdTree::<f64, 3>::new(array![[0.0; 3]].view()).unwrap().knn(points.view(), 1).err().unwrap();
        assert_eq!(error.to_string(), format!("queries[17, 2] = {word} is not finite"));
    }
}

#[test]
fn row_numbers_fit_in_u32() {
    let rows = u32::MAX as usize;
    let message = |argument| format!("rows of {argument} = 4294967295 is too large, at most 4294967294 is supported");
    let row = array![[0.0f32, 0.0, 0.0]];
    let view: ArrayView2<'_, f32> = row.broadcast([rows, 3]).unwrap();
    assert_eq!(KdTree::<f32, 3>::new(view).err().unwrap().to_string(), message("points"));
    let builder = Builder::default().non_finite_is_absent();
    assert_eq!(builder.build::<3>(view).err().unwrap().to_string(), message("points"));
    assert_eq!(tree().knn(view, 1).err().unwrap().to_string(), message("queries"));
}

/// More neighbours than an array can hold.
const TOO_MANY: [usize; 4] = [isize::MAX as usize / 4, 1 << 62, isize::MAX as usize + 1, usize::MAX];

#[test]
fn too_many_neighbors_are_refused() {
    let refused = |found| matches!(found, Err(Error::TooLarge { .. } | Error::Allocation { .. }));
    for k in TOO_MANY {
        assert!(refused(tree().knn(aview2(&[[0.0; 3]; 1]), k)), "{k}");
        assert!(refused(tree().knn(aview2(&[[0.0; 3]; 7]), k)), "{k}");
        assert!(refused(tree().knn_self(k)), "{k}");
    }
}

/// Their shape, (0, K), is one that an array can have only where K is.
#[test]
fn too_many_neighbors_of_no_query_are_no_panic() {
    let no_rows = aview2::<_, 3>(&[]);
    let empty = KdTree::<f32, 3>::new(no_rows).unwrap();
    for k in TOO_MANY {
        for found in [tree().knn(no_rows, k), empty.knn(no_rows, k), empty.knn_self(k)] {
            match found {
                Ok(found) => assert_eq!(found.indices.dim(), (0, k)),
                Err(error) => assert!(matches!(error, Error::TooLarge { .. }), "{error:?}"),
            }
        }
    }
}

#[test]
fn levels_that_the_cpu_lacks_are_refused() {
    let highest = Level::highest();
    for level in Level::ALL {
        let found = tree().with_level(level).map(|tree| tree.level());
        let expected = if level <= highest { Ok(level) } else { Err(Error::LevelUnavailable { level, highest }) };
        assert_eq!(found, expected);
    }
}
