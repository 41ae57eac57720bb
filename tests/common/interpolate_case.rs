//! A problem for interpolation, from a few small numbers, and its check against plain loops.

use super::adjoint_case::{Scene, strided};
use super::cells::{Cell, assert_same};
use super::groups::{Groups, zeros};
use super::interpolation::{Near, Neighbor, Sum, Weighing, wide};
use super::neighbors::{BruteForce, assert_neighbors};
use super::random::Random;
use super::reduction_case::{assert_flat, check_into, flat};
use super::search_case::SearchCase;
use super::space::Space;
use super::strides::{Strided, Strides};
use super::threads;
use super::values::{Value, Values};
use ndarray::{Array2, ArrayD, ArrayView2, Ix2};
use pullback::Level;
use pullback::kdtree::{Interpolate, Interpolation};

pub const POWERS: [f32; 9] = [0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 7.0, 8.0, 30.0];
pub const EPSILONS: [f32; 5] = [0.0, 1e-30, 1e-10, 1e-3, 1.0];

/// The strides of every array.
#[derive(Clone, Copy, Debug, Default)]
pub struct InterpolateLayout {
    pub queries: Strides,
    pub values: Strides,
    pub grad_y: Strides,
    /// Results, and the gradient to the values.
    pub y: Strides,
    pub grad_queries: Strides,
    pub grad_points: Strides,
}

/// A problem: where and how neighbours are found, how they are weighed, and what is interpolated.
#[derive(Clone, Debug)]
pub struct InterpolateCase {
    pub search: SearchCase,
    pub channels: usize,
    /// Of few bits, so that the reference is near the truth.
    pub power: f32,
    pub eps: f32,
    pub fill: f32,
    pub layout: InterpolateLayout,
}

impl Default for InterpolateCase {
    fn default() -> Self {
        Self {
            search: SearchCase::default(),
            channels: 5,
            power: 2.0,
            eps: 0.0,
            fill: 7.5,
            layout: InterpolateLayout::default(),
        }
    }
}

/// The neighbours that were found, and all that the loops need to know of them.
struct Found<T> {
    weighing: Weighing<T>,
    space: Space<T>,
    /// Wrapped.
    points: Array2<T>,
    /// Wrapped.
    queries: Array2<T>,
    groups: Groups,
    /// (1, M * K)
    weights: ArrayD<T>,
}

impl InterpolateCase {
    pub fn check(&self, level: Level) {
        threads::with(self.search.case.threads, || match self.search.case.double {
            false => self.check_element::<f32>(level),
            true => self.check_element::<f64>(level),
        });
    }

    /// All that is computed, one after another.
    pub fn results<T: Value>(&self, level: Level) -> Vec<T> {
        let mut scene = self.search.scene::<T>(level);
        let number = |x: f32| T::from_f32(x).expect("an element is an f32");
        let interpolate = Interpolate::new(&scene.tree, self.search.case.k, number(self.power), number(self.eps));
        let interpolate = interpolate.expect("power and eps are good").metric(self.search.metric);
        let mut draw =
            |rows| Array2::from_shape_simple_fn([rows, self.channels], || Values::Spread.draw::<T>(&mut scene.random));
        let (values, grad_y) = (draw(scene.points.nrows()), draw(scene.queries.nrows()));
        let at = interpolate.at(scene.queries.view()).expect("the queries are good");
        let gradients = at.adjoint(grad_y.view(), values.view()).expect("the shapes are right");
        let arrays = [
            at.weights().to_owned(),
            at.forward(values.view()).expect("the shapes are right"),
            gradients.grad_values,
            gradients.grad_queries,
            gradients.grad_points,
        ];
        arrays.into_iter().flatten().collect()
    }

    fn check_element<T: Value>(&self, level: Level) {
        let Scene { space, points, queries, tree, mut random } = self.search.scene::<T>(level);
        let number = |x: f32| T::from_f32(x).expect("an element is an f32");
        let (metric, k) = (self.search.metric, self.search.case.k);
        let queries = strided(&queries, self.layout.queries, T::zero());
        let owned = queries.view().to_owned();
        let bounds = self.search.bounds(&tree, &owned, &mut random);
        let interpolate = Interpolate::new(&tree, k, number(self.power), number(self.eps));
        let interpolate = interpolate.expect("power and eps are good").metric(metric).fill(number(self.fill));
        let interpolate = bounds.per_query().map_or(interpolate, |bounds| interpolate.within(bounds));
        let at = interpolate.at(queries.view()).expect("the queries are good");

        let brute_force = BruteForce::in_space(space.clone(), points.view()).metric(metric);
        assert_neighbors(at.neighbors(), &brute_force.knn_within(queries.view(), k, &bounds));
        let indices = &at.neighbors().indices;
        let named = indices.iter().map(|&index| Some(index as usize).filter(|&row| row < points.nrows())).collect();
        let named = Array2::from_shape_vec([1, indices.len()], named).expect("as many elements");
        assert_eq!(at.weights().dim(), indices.dim(), "shape of weights");
        let found = Found {
            weighing: Weighing { metric, power: number(self.power), eps: number(self.eps) },
            points: space.wrapped(points.view()),
            queries: space.wrapped(queries.view()),
            space,
            groups: Groups { named, lengths: vec![k; queries.view().nrows()], rows: points.nrows() },
            weights: flat(&at.weights(), [1, indices.len()]),
        };
        found.check_weights();
        let (values, grad_y) = self.data(&found, &mut random);
        self.check_forward(&at, &found, &values, &grad_y, &mut random);
        self.check_adjoint(&at, &found, [&values, &grad_y], &mut random);
        let y = at.forward(values.view()).expect("the shapes are right");
        assert_same("forward in one call", &interpolate.forward(values.view(), queries.view()).expect("as above"), &y);
        let gradients = at.adjoint(grad_y.view(), values.view()).expect("the shapes are right");
        let in_one_call = interpolate.adjoint(grad_y.view(), values.view(), queries.view()).expect("as above");
        assert_same("grad_values in one call", &in_one_call.grad_values, &gradients.grad_values);
        assert_same("grad_queries in one call", &in_one_call.grad_queries, &gradients.grad_queries);
        assert_same("grad_points in one call", &in_one_call.grad_points, &gradients.grad_points);
    }

    /// Values and gradients, with NaN where nobody asks.
    fn data<T: Value>(&self, found: &Found<T>, random: &mut Random) -> (Strided<T, Ix2>, Strided<T, Ix2>) {
        let (rows, queries) = (found.groups.rows, found.queries.nrows());
        let mut draw =
            |rows, strides| Strided::new(Ix2(rows, self.channels), strides, || Values::Spread.draw::<T>(random));
        let (mut values, mut grad_y) = (draw(rows, self.layout.values), draw(queries, self.layout.grad_y));
        if self.layout.values.broadcast == 0 {
            for row in (0..rows).filter(|row| !found.groups.named.iter().any(|&named| named == Some(*row))) {
                values.view_mut().row_mut(row).fill(T::nan());
            }
        }
        if self.layout.grad_y.broadcast == 0 {
            for query in (0..queries).filter(|&query| found.keys(query).is_empty()) {
                grad_y.view_mut().row_mut(query).fill(T::nan());
            }
        }
        (values, grad_y)
    }

    fn check_forward<T: Value>(
        &self,
        at: &Interpolation<'_, T>,
        found: &Found<T>,
        values: &Strided<T, Ix2>,
        grad_y: &Strided<T, Ix2>,
        random: &mut Random,
    ) {
        let (channels, groups) = (self.channels, &found.groups);
        let flat_values = flat(&values.view(), groups.features(channels));
        let mut expected = groups.weighted(&flat_values, &found.weights);
        for query in (0..found.queries.nrows()).filter(|&query| found.keys(query).is_empty()) {
            let fill = T::from_f32(self.fill).expect("an element is an f32");
            (0..channels).for_each(|channel| expected[[0, query, channel]] = Cell::Copied(fill));
        }
        assert_flat("forward", &at.forward(values.view()).expect("the shapes are right"), &expected);
        let shape = Ix2(found.queries.nrows(), channels);
        let y = Strided::new(shape, self.layout.y, || Values::Spread.draw(random));
        check_into("forward_into", &y, &expected, |y| at.forward_into(values.view(), y));

        let grad_y = flat(&grad_y.view(), groups.results(channels));
        let expected = groups.weighted_x(&grad_y, &found.weights, &zeros(groups.features(channels)));
        let alone = flat(&grad_y, [found.queries.nrows(), channels]);
        let alone = alone.into_dimensionality::<Ix2>().expect("two axes");
        assert_flat("adjoint_values", &at.adjoint_values(alone.view()).expect("the shapes are right"), &expected);
        let start = Strided::new(values.view().raw_dim(), self.layout.y, || Values::Spread.draw(random));
        check_into("adjoint_values_into", &start, &expected, |grads| at.adjoint_values_into(alone.view(), grads));
        let from = flat(&start.view(), groups.features(channels));
        let expected = groups.weighted_x(&grad_y, &found.weights, &from);
        check_into("adjoint_values_add", &start, &expected, |grads| at.adjoint_values_add(alone.view(), grads));
    }

    fn check_adjoint<T: Value>(
        &self,
        at: &Interpolation<'_, T>,
        found: &Found<T>,
        [values, grad_y]: [&Strided<T, Ix2>; 2],
        random: &mut Random,
    ) {
        let (layout, channels, groups) = (self.layout, self.channels, &found.groups);
        let mut start =
            |rows, columns, strides| Strided::new(Ix2(rows, columns), strides, || Values::Spread.draw::<T>(random));
        let gv = start(groups.rows, channels, layout.y);
        let gq = start(found.queries.nrows(), found.queries.ncols(), layout.grad_queries);
        let gp = start(groups.rows, found.queries.ncols(), layout.grad_points);
        let (values, grad_y) = (values.view(), grad_y.view());
        let flat_y = flat(&grad_y, groups.results(channels));
        let of_features = groups.features(channels);

        let gradients = at.adjoint(grad_y, values).expect("the shapes are right");
        let expected = groups.weighted_x(&flat_y, &found.weights, &zeros(of_features));
        assert_flat("grad_values", &gradients.grad_values, &expected);
        let zeros = |shape: &Strided<T, Ix2>| Array2::zeros(shape.view().dim());
        let [of_queries, of_points] = found.positions([zeros(&gq), zeros(&gp)], values, grad_y);
        assert_near("grad_queries", &gradients.grad_queries, &of_queries);
        assert_near("grad_points", &gradients.grad_points, &of_points);

        // The same bits, overwritten.
        let cells = |array: &Array2<T>| array.mapv(Cell::Computed).into_dyn();
        let [exact_q, exact_p] = [&gradients.grad_queries, &gradients.grad_points].map(cells);
        check_into("grad_values of adjoint_into", &gv, &expected, |gv| {
            check_into("grad_queries of adjoint_into", &gq, &exact_q, |gq| {
                check_into("grad_points of adjoint_into", &gp, &exact_p, |gp| {
                    at.adjoint_into(grad_y, values, gv, gq, gp)
                });
                Ok(())
            });
            Ok(())
        });

        let expected = groups.weighted_x(&flat_y, &found.weights, &flat(&gv.view(), of_features));
        let nears = found.positions([gq.view().to_owned(), gp.view().to_owned()], values, grad_y);
        let (mut added_q, mut added_p) = (gq.clone(), gp.clone());
        check_into("grad_values of adjoint_add", &gv, &expected, |gv| {
            at.adjoint_add(grad_y, values, gv, added_q.view_mut(), added_p.view_mut())
        });
        assert_near("grad_queries of adjoint_add", &added_q.view().to_owned(), &nears[0]);
        assert_near("grad_points of adjoint_add", &added_p.view().to_owned(), &nears[1]);
        assert_same("the memory around", &added_q.outside(T::zero()), &gq.outside(T::zero()));
        assert_same("the memory around", &added_p.outside(T::zero()), &gp.outside(T::zero()));
    }
}

impl<T: Value> Found<T> {
    /// The points that a query has as neighbours, and their places.
    fn neighbors(&self, query: usize) -> impl Iterator<Item = usize> {
        let k = self.groups.lengths[query];
        (0..k).map_while(move |at| self.groups.named[[0, query * k + at]])
    }

    fn keys(&self, query: usize) -> Vec<T> {
        let row = |rows: &Array2<T>, row: usize| rows.row(row).to_vec();
        let key = |point| self.space.key(self.weighing.metric, &row(&self.points, point), &row(&self.queries, query));
        self.neighbors(query).map(key).collect()
    }

    /// Near enough to those in f64, and exact where that is promised.
    fn check_weights(&self) {
        for (query, &k) in self.groups.lengths.iter().enumerate() {
            let keys = self.keys(query);
            let nears = self.weighing.weights(&keys);
            let alike = self.weighing.alike(&keys);
            for at in 0..k {
                let found = self.weights[[0, query * k + at]];
                let near = nears.get(at).copied().unwrap_or_default();
                let exact = match alike {
                    _ if at >= keys.len() => Some(T::zero()),
                    Some(count) if at < count => Some(T::one() / T::from_usize(count).expect("a count")),
                    Some(_) => Some(T::zero()),
                    None => None,
                };
                assert!(near.accepts(found), "weights[{query}, {at}] = {found:?}, not {near:?}, of keys {keys:?}");
                if let Some(exact) = exact {
                    assert_eq!(found.to_bits(), exact.to_bits(), "weights[{query}, {at}] = {found:?}, not {exact:?}");
                }
            }
        }
    }

    /// The gradients to queries and to points, added to what is there.
    fn positions(
        &self,
        start: [Array2<T>; 2],
        values: ArrayView2<'_, T>,
        grad_y: ArrayView2<'_, T>,
    ) -> [Array2<Near>; 2] {
        let [mut of_queries, mut of_points] = start.map(|start| start.mapv(|x| Sum::starting_at(wide(x))));
        for query in 0..self.queries.nrows() {
            let rows: Vec<usize> = self.neighbors(query).collect();
            let keys = self.keys(query);
            let neighbor = |(&row, &key): (&usize, &T)| {
                let (p, q) = (self.points.row(row).to_vec(), self.queries.row(query).to_vec());
                Neighbor { key, differences: self.space.differences(&p, &q), values: values.row(row) }
            };
            let neighbors: Vec<_> = rows.iter().zip(&keys).map(neighbor).collect();
            let terms = self.weighing.position_terms(&neighbors, grad_y.row(query));
            for (&row, terms) in rows.iter().zip(&terms) {
                for (axis, &term) in terms.iter().enumerate().filter(|(_, term)| **term != Near::default()) {
                    of_queries[[query, axis]].add(term);
                    of_points[[row, axis]].add(Near { value: -term.value, ..term });
                }
            }
        }
        [of_queries, of_points].map(|sums| sums.mapv(|sum| sum.near::<T>()))
    }
}

/// Every element of `found` is near enough.
#[track_caller]
pub fn assert_near<T: Value>(what: &str, found: &Array2<T>, expected: &Array2<Near>) {
    assert_eq!(found.dim(), expected.dim(), "shape of {what}");
    for ((at, &found), near) in found.indexed_iter().zip(expected) {
        assert!(near.accepts(found), "{what}{at:?} = {found:?}, not {near:?}");
    }
}
