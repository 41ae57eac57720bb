//! Features of points from their neighbourhoods: one set-abstraction layer in the manner of `PointNet++` (Qi et al.,
//! 2017), interpolated back to the points, with its gradient by hand and thirty steps of gradient descent.
//!
//! ```text
//! features (N, F) -> at the neighbours of P centres (P, K, 3 + F) -> linear, ReLU (P, K, H)
//!                 -> maximum over the neighbours (P, H) -> interpolated at every point (N, H) -> linear (N, 1) -> loss
//! ```
//!
//! `cargo run --release --example point_features [cloud.csv]` takes a scan of a made-up street, or the points of a file
//! that the tour reads. It exits with 1 where a gradient is wrong or the loss does not go down.
#![allow(clippy::print_stdout, reason = "printing is what an example is for")]

#[path = "tour/random.rs"]
mod random;
#[path = "tour/read.rs"]
mod read;
#[path = "tour/scan.rs"]
mod scan;

use pullback::gather::{Extremes, Extremum, Gather, OutOfRange, Pooled, Ties, Weighted, WeightedGradients};
use pullback::kdtree::KdTree;
use pullback::ndarray::{Array1, Array2, ArrayView1, Axis, Ix2, Zip, concatenate, s};
use random::Random;
use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

/// P, K, F and H of the layer, and the centres that a point is interpolated from.
const CENTRES: usize = 128;
const NEIGHBOURS: usize = 16;
const FEATURES: usize = 2;
const HIDDEN: usize = 24;
const NEAREST: usize = 3;

const STEPS: usize = 30;
const RATE: f64 = 0.05;

/// The largest relative error of a gradient. The step of the differences is so small that no maximum changes its mind
/// within it, and no rectifier; rounding then leaves about 1e-9, and 1e-7 of the smallest step.
const TOLERANCE: f64 = 1e-6;

/// What the loss is a function of: features (N, F), linear layer (3 + F, H), its bias (1, H), interpolation weights
/// (N, 3), and the last linear layer (H, 1).
type Variables = [Array2<f64>; 5];
const NAMES: [&str; 5] = ["features", "layer", "bias", "weights", "head"];
/// The variables that are learnt; the others come with the points.
const LEARNT: [usize; 3] = [1, 2, 4];

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("point_features: {error}");
            ExitCode::from(2)
        }
    }
}

/// Whether the gradients are right and the loss went down.
fn run() -> Result<bool, Box<dyn Error>> {
    let points = match std::env::args_os().nth(1) {
        None => scan::scan(2000, 1),
        Some(path) => {
            let cloud = read::file(Path::new(&path))?;
            println!("{} rows with a NaN or an infinity left out", cloud.dropped);
            cloud.points
        }
    };
    let points = unit_box(&distinct(&points));
    if points.nrows() < NEIGHBOURS {
        return Err(format!("{} different points are too few, {NEIGHBOURS} are needed", points.nrows()).into());
    }
    let mut random = Random::new(1);
    let (layer, weights) = Layer::new(&points)?;
    let mut variables = [
        // Height, and distance from the middle.
        Array2::from_shape_fn((points.nrows(), FEATURES), |(row, feature)| match feature {
            0 => points[[row, 2]],
            _ => points.row(row).dot(&points.row(row)).sqrt(),
        }),
        Array2::from_shape_simple_fn((3 + FEATURES, HIDDEN), || random.normal()),
        Array2::from_shape_simple_fn((1, HIDDEN), || 0.1 * random.normal()),
        weights,
        Array2::from_shape_simple_fn((HIDDEN, 1), || random.signed() / (HIDDEN as f64).sqrt()),
    ];
    println!(
        "{} points, {} centres, {NEIGHBOURS} neighbours of each",
        points.nrows(),
        layer.relative.nrows() / NEIGHBOURS
    );

    let right = check(&layer, &variables, &mut random)?;
    let first = layer.forward(&variables)?.loss;
    for step in 0..STEPS {
        let state = layer.forward(&variables)?;
        let gradient = layer.adjoint(&variables, &state)?;
        for learnt in LEARNT {
            variables[learnt].scaled_add(-RATE, &gradient[learnt]);
        }
        if step % 5 == 0 {
            println!("step {step:2}: loss {:.6}", state.loss);
        }
    }
    let last = layer.forward(&variables)?.loss;
    println!("step {STEPS}: loss {last:.6}, {:.3} of the first", last / first);
    Ok(right && last < first)
}

/// What is known before the features: who is whose neighbour.
struct Layer {
    /// (P K, 3), where the neighbours lie as seen from their centre.
    relative: Array2<f64>,
    gather: Gather<Ix2, Ix2>,
    pool: Pooled<Ix2, Ix2>,
    interpolate: Weighted<Ix2, Ix2>,
    /// (N, 1), what is to be learnt.
    target: Array2<f64>,
}

/// What the adjoint needs of the forward pass.
struct State {
    rows: Array2<f64>,
    hidden: Array2<f64>,
    max: Extremes<f64, Ix2>,
    spread: Array2<f64>,
    error: Array2<f64>,
    loss: f64,
}

impl Layer {
    /// The layer on `points` (N, 3), and its interpolation weights (N, 3).
    fn new(points: &Array2<f64>) -> pullback::Result<(Self, Array2<f64>)> {
        let n = points.nrows();
        let centres = points.select(Axis(0), &farthest(points, CENTRES));
        // Where there are fewer points than neighbours asked for, what is missing has the index N.
        let padding = OutOfRange::Skip { fill: 0.0 };
        let neighbours = KdTree::<f64, 3>::new(points.view())?.knn(centres.view(), NEIGHBOURS)?.indices;
        let gather = Gather::unbatched(neighbours.view(), n, padding)?;
        let relative = gather.forward(points.view())? - centres.view().insert_axis(Axis(1));
        let relative = relative.into_shape_with_order((neighbours.len(), 3)).expect("a row a neighbour");
        // The layer makes a row for every neighbour of every centre, so the maximum is over rows of its own.
        let own = Array2::from_shape_fn(neighbours.dim(), |(centre, k)| {
            if (neighbours[[centre, k]] as usize) < n { (centre * NEIGHBOURS + k) as u32 } else { u32::MAX }
        });
        let pool = Pooled::unbatched(own.view(), own.len(), padding)?;

        let near = KdTree::<f64, 3>::new(centres.view())?.knn(points.view(), NEAREST)?;
        let interpolate = Weighted::unbatched(near.indices.view(), centres.nrows(), padding)?;
        // Inverse squared distances; a centre that is not there is infinitely far away.
        let mut weights = near.distances.mapv(|distance| 1.0 / (distance * distance + 1e-6));
        weights /= &weights.sum_axis(Axis(1)).insert_axis(Axis(1));

        // A function of the place, through the two features that a point has.
        let wave = |p: ArrayView1<'_, f64>| (4.0 * p.dot(&p).sqrt()).sin() + 2.0 * p[2];
        let target = points.outer_iter().map(wave).collect::<Array1<_>>().insert_axis(Axis(1));
        Ok((Self { relative, gather, pool, interpolate, target }, weights))
    }

    fn forward(&self, [features, layer, bias, weights, head]: &Variables) -> pullback::Result<State> {
        let gathered = self.gather.forward(features.view())?;
        let gathered = gathered.into_shape_with_order((self.relative.nrows(), FEATURES)).expect("a row a neighbour");
        let rows = concatenate(Axis(1), &[self.relative.view(), gathered.view()]).expect("a row a neighbour");
        let hidden = (rows.dot(layer) + bias).mapv_into(|x| x.max(0.0));
        let max = self.pool.extremes(Extremum::Max, hidden.view())?;
        let spread = self.interpolate.forward(max.values.view(), weights.view())?;
        let error = spread.dot(head) - &self.target;
        let loss = 0.5 * error.mapv(|e| e * e).mean().expect("points");
        Ok(State { rows, hidden, max, spread, error, loss })
    }

    /// The gradient of the loss to every variable: the steps of `forward` in reverse, each by its transpose.
    fn adjoint(&self, [_, layer, _, weights, head]: &Variables, state: &State) -> pullback::Result<Variables> {
        let grad_error = &state.error / state.error.len() as f64;
        let grad_head = state.spread.t().dot(&grad_error);
        let grad_spread = grad_error.dot(&head.t());
        let WeightedGradients { grad_x: grad_max, grad_w: grad_weights } =
            self.interpolate.adjoint(grad_spread.view(), state.max.values.view(), weights.view())?;
        let ties = Ties::First(state.max.arguments.view());
        let mut grad_hidden = self.pool.extremes_adjoint(grad_max.view(), ties)?;
        Zip::from(&mut grad_hidden).and(&state.hidden).for_each(|grad, &x| *grad = if x > 0.0 { *grad } else { 0.0 });
        let grad_layer = state.rows.t().dot(&grad_hidden);
        let grad_bias = grad_hidden.sum_axis(Axis(0)).insert_axis(Axis(0));
        let grad_rows = grad_hidden.dot(&layer.t());
        let shape = (grad_rows.nrows() / NEIGHBOURS, NEIGHBOURS, FEATURES);
        let grad_gathered = grad_rows.slice(s![.., 3..]).to_shape(shape).expect("a row a neighbour").into_owned();
        let grad_features = self.gather.adjoint(grad_gathered.view())?;
        Ok([grad_features, grad_layer, grad_bias, grad_weights, grad_head])
    }
}

/// Every gradient against the central difference of the loss along a random direction of its variable.
fn check(layer: &Layer, variables: &Variables, random: &mut Random) -> pullback::Result<bool> {
    const STEP: f64 = 1e-6;
    let gradient = layer.adjoint(variables, &layer.forward(variables)?)?;
    let mut right = true;
    for (which, name) in NAMES.iter().enumerate() {
        let direction = variables[which].mapv(|_| random.signed());
        let state = |step: f64| {
            let mut moved = variables.clone();
            moved[which].scaled_add(step, &direction);
            layer.forward(&moved)
        };
        let mut step = STEP;
        let (mut before, mut behind) = (state(-step)?, state(step)?);
        // Where a maximum or a rectifier changes its mind between both, the loss has no slope. Nearer ones may be on
        // one side.
        while step > STEP / 100.0 && !same_branches(&before, &behind) {
            step /= 4.0;
            (before, behind) = (state(-step)?, state(step)?);
        }
        let difference = (behind.loss - before.loss) / (2.0 * step);
        // Relative to the length of the gradient, since a slope along one direction may be nearly 0.
        let slope = (&gradient[which] * &direction).sum();
        let error = (slope - difference).abs() / gradient[which].mapv(|g| g * g).sum().sqrt().max(f64::MIN_POSITIVE);
        right &= error < TOLERANCE;
        let verdict = if error < TOLERANCE { "right" } else { "WRONG" };
        println!(
            "gradient to {name:8}: {slope:+.9} by hand, {difference:+.9} by differences, error {error:.0e}, {verdict}"
        );
    }
    Ok(right)
}

/// Whether the same elements are the largest of their groups, and the same are above 0.
fn same_branches(a: &State, b: &State) -> bool {
    let above = |x: &f64, y: &f64| (*x > 0.0) == (*y > 0.0);
    a.max.arguments == b.max.arguments && a.hidden.iter().zip(&b.hidden).all(|(x, y)| above(x, y))
}

/// Points without those that are there twice: they would tie for every maximum, where the loss has no one gradient.
fn distinct(points: &Array2<f64>) -> Array2<f64> {
    let mut rows: Vec<[f64; 3]> = points.outer_iter().map(|point| [point[0], point[1], point[2]]).collect();
    rows.sort_by(|a, b| a.partial_cmp(b).expect("finite points"));
    rows.dedup();
    Array2::from(rows)
}

/// Points moved and scaled together, so that the longest side of their box is -1 to 1.
fn unit_box(points: &Array2<f64>) -> Array2<f64> {
    let low = points.fold_axis(Axis(0), f64::INFINITY, |a, &b| a.min(b));
    let high = points.fold_axis(Axis(0), f64::NEG_INFINITY, |a, &b| a.max(b));
    let longest = (&high - &low).fold(f64::MIN_POSITIVE, |a, &b| a.max(b));
    (points - &((&low + &high) / 2.0)) * (2.0 / longest)
}

/// Up to `count` points, each the farthest from those before it.
fn farthest(points: &Array2<f64>, count: usize) -> Vec<usize> {
    let mut chosen = vec![0];
    let mut distances = vec![f64::INFINITY; points.nrows()];
    while chosen.len() < count.min(points.nrows()) {
        let last = points.row(chosen[chosen.len() - 1]);
        for (distance, point) in distances.iter_mut().zip(points.outer_iter()) {
            *distance = distance.min(Zip::from(point).and(last).fold(0.0, |sum, a, b| sum + (a - b) * (a - b)));
        }
        let (next, _) = distances.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).expect("points");
        chosen.push(next);
    }
    chosen
}
