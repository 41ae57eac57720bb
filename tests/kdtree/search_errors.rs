//! Refusals of bounds, radii and boxes: what they name and how they read.

use crate::common::strides::{Strided, Strides};
use crate::common::threads;
use ndarray::{Array1, Array2, ArrayView2, Ix1, array};
use pullback::Error;
use pullback::kdtree::{Builder, KdTree, KdTreeDyn, PerQuery};

fn tree() -> KdTree<f32, 3> {
    KdTree::new(array![[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]].view()).unwrap()
}

/// The refusals of every call that takes bounds or radii, for some queries.
fn refusals<'a>(
    tree: &'a KdTreeDyn<f32>,
    queries: ArrayView2<'a, f32>,
    limits: PerQuery<'a, f32>,
) -> [Option<Error>; 3] {
    [
        tree.search().within(limits).knn(queries, 1).err(),
        tree.search().radius(queries, limits).err(),
        tree.search().radius_count(queries, limits).err(),
    ]
}

const ARGUMENTS: [&str; 3] = ["within", "radius", "radius"];

/// Less than 0, however little, or not a number.
const BAD: [(f32, &str); 5] = [
    (-1.5, "-1.5"),
    (f32::NAN, "NaN"),
    (-f32::NAN, "NaN"),
    (f32::NEG_INFINITY, "-inf"),
    (-1.0 / 1024.0, "-0.0009765625"),
];

fn distance(argument: &'static str, position: Option<usize>, value: &str) -> Option<Error> {
    Some(Error::Distance { argument, position, value: value.to_owned() })
}

#[test]
fn bounds_and_radii_that_are_no_distances_are_refused() {
    let (tree, queries) = (tree(), Array2::zeros([3, 3]));
    for (bad, word) in BAD {
        let one = ARGUMENTS.map(|argument| distance(argument, None, word));
        assert_eq!(refusals(&tree, queries.view(), PerQuery::One(bad)), one);
        assert_eq!(tree.search().within(bad).knn_self(1).err(), distance("within", None, word));
        assert_eq!(tree.pairs_within(bad).err(), distance("radius", None, word));
        assert_eq!(tree.search().pairs_within(bad).err(), distance("radius", None, word));

        let limits = array![1.0, bad, f32::NAN];
        let each = ARGUMENTS.map(|argument| distance(argument, Some(1), word));
        assert_eq!(refusals(&tree, queries.view(), PerQuery::Each(limits.view())), each);
        let of_points = array![0.0, bad];
        assert_eq!(tree.search().within(&of_points).knn_self(1).err(), distance("within", Some(1), word));
    }
    let least = -f32::from_bits(1);
    assert!(refusals(&tree, queries.view(), PerQuery::One(least)).iter().all(Option::is_some));
    // Neither a zero nor an infinity is refused.
    for good in [0.0, -0.0, f32::from_bits(1), f32::MAX, f32::INFINITY] {
        assert_eq!(refusals(&tree, queries.view(), PerQuery::One(good)), [None, None, None]);
        let limits = array![good, 1.0, good];
        assert_eq!(refusals(&tree, queries.view(), PerQuery::Each(limits.view())), [None, None, None]);
        assert_eq!(tree.pairs_within(good).err(), None);
    }
}

#[test]
fn messages_name_the_position_and_the_value() {
    let (tree, queries) = (tree(), Array2::zeros([3, 3]));
    let read = |error: Option<Error>| error.unwrap().to_string();
    let limits = array![1.0, 2.0, f32::NAN];
    let [within, radius, count] = refusals(&tree, queries.view(), PerQuery::Each(limits.view())).map(read);
    assert_eq!(within, "within[2] = NaN, expected a distance of at least 0");
    assert_eq!(radius, "radius[2] = NaN, expected a distance of at least 0");
    assert_eq!(count, radius);
    assert_eq!(read(tree.pairs_within(-2.0).err()), "radius = -2, expected a distance of at least 0");
    let found = tree.search().within(f32::NEG_INFINITY).knn_self(1);
    assert_eq!(read(found.err()), "within = -inf, expected a distance of at least 0");
    let found = tree.radius(queries.view(), &array![1.0, 2.0]);
    assert_eq!(read(found.err()), "radius has shape [2], expected [3]");
}

/// The lower of two bad bounds far apart is named, in the order of the array and not of its memory, by any number of
/// threads.
#[test]
fn the_lowest_bad_limit_is_named() {
    const ROWS: usize = 100_000;
    let (tree, query) = (tree(), Array2::zeros([1, 3]));
    let queries = query.broadcast([ROWS, 3]).unwrap();
    let rows = [0, 1, ROWS / 5 * 2, ROWS / 2 - 1, ROWS / 2, ROWS / 5 * 3, ROWS - 1];
    let layouts = [(0, 0), (1, 0), (0, 1)].map(|(reversed, halved)| Strides { reversed, halved, ..Strides::default() });
    for (strides, (low, high)) in layouts.into_iter().flat_map(|strides| {
        let pairs = (1..rows.len()).flat_map(|high| rows[..high].iter().map(move |&low| (low, rows[high])));
        pairs.map(move |pair| (strides, pair))
    }) {
        let mut limits = Strided::new(Ix1(ROWS), strides, || 1.0);
        (limits.view_mut()[low], limits.view_mut()[high]) = (-3.0, f32::NAN);
        let named = ARGUMENTS.map(|argument| distance(argument, Some(low), "-3"));
        for count in threads::COUNTS {
            let found = threads::with(count, || refusals(&tree, queries, PerQuery::Each(limits.view())));
            assert_eq!(found, named, "{count} threads, {strides:?}");
        }
    }
}

#[test]
fn wrong_numbers_of_bounds_and_radii_are_refused() {
    let tree = tree();
    for (queries, limits) in [(3, 0), (3, 2), (3, 4), (0, 1), (1, 0)] {
        let (rows, limits) = (Array2::zeros([queries, 3]), Array1::from_elem(limits, 1.0));
        let error = |argument| Some(Error::Shape { argument, found: vec![limits.len()], expected: vec![queries] });
        assert_eq!(refusals(&tree, rows.view(), PerQuery::Each(limits.view())), ARGUMENTS.map(error));
    }
    for limits in [0, 1, 3] {
        let limits = Array1::from_elem(limits, 1.0);
        let error = Error::Shape { argument: "within", found: vec![limits.len()], expected: vec![2] };
        assert_eq!(tree.search().within(&limits).knn_self(1).err(), Some(error));
    }
}

#[test]
fn queries_that_are_too_many_are_refused() {
    let rows = u32::MAX as usize;
    let row = array![[0.0f32, 0.0, 0.0]];
    let view = row.broadcast([rows, 3]).unwrap();
    let message = "rows of queries = 4294967295 is too large, at most 4294967294 is supported";
    for error in refusals(&tree(), view, PerQuery::One(1.0)) {
        assert_eq!(error.unwrap().to_string(), message);
    }
}

#[test]
fn boxes_of_other_dimensions_are_refused() {
    let points = Array2::<f64>::zeros([4, 3]);
    for axes in [0, 1, 2, 4, 16, 17] {
        let error = |argument| Some(Error::Shape { argument, found: vec![axes], expected: vec![3] });
        let builder = Builder::default().periodic(&vec![Some(1.0); axes]);
        assert_eq!(builder.build::<3>(points.view()).err(), error("periodic"));
        assert_eq!(builder.build_dyn(points.view()).err(), error("periodic"));
        let builder = Builder::default().periodic(&[Some(1.0); 3]).origin(&vec![0.0; axes]);
        assert_eq!(builder.build::<3>(points.view()).err(), error("origin"));
        assert_eq!(builder.build_dyn(points.view()).err(), error("origin"));
    }
}

#[test]
fn lengths_of_a_box_are_finite_and_positive() {
    let points = Array2::<f64>::zeros([4, 3]);
    let values = [(0.0, "0"), (-0.0, "-0"), (-2.5, "-2.5"), (f64::NAN, "NaN"), (f64::INFINITY, "inf")];
    for ((bad, word), axis) in values.into_iter().flat_map(|value| [0, 1, 2].map(|axis| (value, axis))) {
        let mut lengths = [None, Some(1.0), Some(-1.0)];
        lengths[axis] = Some(bad);
        let builder = Builder::default().periodic(&lengths);
        let error = Error::Length { argument: "periodic", axis, value: word.to_owned() };
        assert_eq!(builder.build::<3>(points.view()).err(), Some(error.clone()));
        assert_eq!(builder.build_dyn(points.view()).err(), Some(error.clone()));
        let message = format!("periodic[{axis}] = {word}, expected a length that is finite and greater than 0");
        assert_eq!(error.to_string(), message);
    }
    let least = Builder::default().periodic(&[Some(f64::from_bits(1)), Some(f64::MAX), None]);
    assert_eq!(least.build::<3>(points.view()).err(), None);
}

#[test]
fn the_origin_of_a_box_is_finite() {
    let points = Array2::<f32>::zeros([4, 2]);
    for (bad, word) in [(f32::NAN, "NaN"), (f32::INFINITY, "inf"), (f32::NEG_INFINITY, "-inf")] {
        for (origin, axis) in [([bad, 0.0], 0), ([0.0, bad], 1), ([bad, f32::NAN], 0)] {
            // Absent points make no difference to the box.
            for builder in [Builder::default(), Builder::default().non_finite_is_absent()] {
                let error = builder.periodic(&[Some(1.0); 2]).origin(&origin).build::<2>(points.view()).err().unwrap();
                assert_eq!(error.to_string(), format!("origin[{axis}] = {word} is not finite"));
                assert_eq!(
                    error,
                    Error::NonFinite { argument: "origin", position: vec![axis], value: word.to_owned() }
                );
            }
        }
    }
}
