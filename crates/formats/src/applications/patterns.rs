//! Communication patterns, by message size.

use super::grid::{Grid, sides_of};
use super::schedule::ScheduleWriter;
use super::{ApplicationParameters, SIZE};

/// Writes a pattern of [`super::PATTERNS`].
pub fn run(name: &str, parameters: &ApplicationParameters, schedule: &mut ScheduleWriter) {
    let (bytes, compute) = (parameters.size.unwrap_or(SIZE), parameters.compute_ns);
    for iteration in 0..parameters.iterations {
        if schedule.is_full() {
            break;
        }
        match name {
            "halo" => halo(schedule, bytes, compute),
            "all-to-all" => {
                schedule.compute(compute);
                schedule.all_to_all(bytes);
            }
            "all-reduce" => {
                schedule.compute(compute);
                schedule.all_reduce_ring(bytes);
            }
            _ => wavefront(schedule, bytes, compute, iteration),
        }
    }
}

/// Writes an iteration of a stencil on a torus in two dimensions: each rank sends `bytes` to each of its four
/// neighbours, then computes.
fn halo(schedule: &mut ScheduleWriter, bytes: u64, compute: u64) {
    let grid = Grid { sides: sides_of(schedule.ranks(), 2) };
    let directions = [(0, 1), (0, -1), (1, 1), (1, -1)];
    schedule.exchange(directions.iter().flat_map(|(axis, step)| grid.shifts(*axis, *step, bytes)));
    schedule.compute(compute);
}

/// Writes a sweep over a grid in two dimensions from one of its corners, which iterations take in turn. A rank waits
/// for its neighbours that are nearer to the corner, computes, and sends `bytes` to those that are further away (Koch,
/// Baker and Alcouffe, "Solution of the first-order form of the 3-D discrete ordinates equation on a massively parallel
/// processor", 1992).
fn wavefront(schedule: &mut ScheduleWriter, bytes: u64, compute: u64, iteration: u32) {
    let grid = Grid { sides: sides_of(schedule.ranks(), 2) };
    let steps = [(1, 1), (1, -1), (-1, 1), (-1, -1)][iteration as usize % 4];
    // A coordinate as the sweep counts it, from its corner.
    let from = |at: u32, side: u32, step: i32| if step > 0 { at } else { side - 1 - at };
    let (rows, columns) = (grid.sides[0], grid.sides[1]);
    for diagonal in 0..rows + columns - 1 {
        let front: Vec<(u32, u32, u32)> = (0..schedule.ranks())
            .map(|rank| (rank, grid.place(rank)))
            .map(|(rank, place)| (rank, from(place[0], rows, steps.0), from(place[1], columns, steps.1)))
            .filter(|(_, row, column)| row + column == diagonal)
            .collect();
        schedule.compute_on(front.iter().map(|(rank, ..)| *rank), compute);
        schedule.exchange(front.iter().flat_map(|&(rank, row, column)| {
            let down = (row + 1 < rows).then(|| (rank, grid.neighbour(rank, 0, steps.0), bytes));
            let right = (column + 1 < columns).then(|| (rank, grid.neighbour(rank, 1, steps.1), bytes));
            down.into_iter().chain(right)
        }));
    }
}
