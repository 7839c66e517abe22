//! The services of one place in order, whose times are added up by whose packets they were of.

use super::cause::Who;
use super::index::own_time;
use firstlight_units::Time;
use std::ops::Range;

/// Fewest services between two totals.
const STEP: usize = 32;

/// A service.
#[derive(Clone, Copy, Debug)]
struct ServiceEnd {
    ends: Time,
    /// Whose packet it was, as a number in [`ServiceLog::whos`].
    of: u32,
    /// Which of the runs it belongs to: services that follow each other without a gap.
    run: u32,
}

/// The services of a place. Adding up many of them reads neither hops nor packets.
#[derive(Debug)]
pub(super) struct ServiceLog {
    services: Vec<ServiceEnd>,
    /// The first service of each run, and when that begins.
    runs: Vec<(u32, Time)>,
    /// All whose packets passed the place.
    whos: Vec<Who>,
    /// How many services are between two totals.
    step: usize,
    /// The time of all services before each `step`-th, by `whos`.
    totals: Vec<u64>,
    time_scale: u64,
}

/// A part of a wait, in which the transmitter served without a gap.
#[derive(Clone, Debug)]
pub(super) struct Served {
    /// The service that goes on when the wait begins, and how much of it is waited for.
    first: (usize, u64),
    /// The services that are waited for from begin to end.
    whole: Range<usize>,
    /// The service that goes on when the wait ends, and how much of it is waited for.
    last: (usize, u64),
}

impl ServiceLog {
    /// The log of services, each with its begin, its end and a number for whose packet it was of; `who` says what
    /// these numbers mean. `numbers` is scratch space.
    pub(super) fn new(
        all: impl ExactSizeIterator<Item = (Time, Time, u32)>,
        who: impl Fn(u32) -> Who,
        time_scale: u64,
        numbers: &mut Vec<u32>,
    ) -> Self {
        let mut services = Vec::with_capacity(all.len());
        let (mut runs, mut found, mut before) = (vec![], vec![], None);
        for (index, (begins, ends, number)) in all.enumerate() {
            if before != Some(begins) {
                runs.push((index as u32, begins));
            }
            before = Some(ends);
            let place = number as usize;
            if numbers.len() <= place {
                numbers.resize(place + 1, u32::MAX);
            }
            if numbers[place] == u32::MAX {
                numbers[place] = found.len() as u32;
                found.push(number);
            }
            services.push(ServiceEnd { ends, of: numbers[place], run: runs.len() as u32 - 1 });
        }
        found.iter().for_each(|number| numbers[*number as usize] = u32::MAX);
        let whos: Vec<Who> = found.into_iter().map(who).collect();
        let step = whos.len().max(STEP);
        let mut log = ServiceLog { services, runs, whos, step, totals: vec![], time_scale };
        log.totals = log.totals();
        log
    }

    fn totals(&self) -> Vec<u64> {
        let mut sums = vec![0; self.whos.len()];
        let mut totals = Vec::with_capacity((self.services.len() / self.step + 1) * sums.len());
        for (index, service) in self.services.iter().enumerate() {
            if index % self.step == 0 {
                totals.extend_from_slice(&sums);
            }
            sums[service.of as usize] += self.own(self.begins(index), service.ends);
        }
        totals
    }

    fn begins(&self, service: usize) -> Time {
        let (first, begins) = self.runs[self.services[service].run as usize];
        if first as usize == service { begins } else { self.services[service - 1].ends }
    }

    /// The begins and ends of the services before that of a number, and whose packets they were of, the latest first.
    pub(super) fn before(&self, service: usize) -> impl Iterator<Item = (Time, Time, Who)> + '_ {
        let all = (0..service).rev();
        all.map(|number| {
            (self.begins(number), self.services[number].ends, self.whos[self.services[number].of as usize])
        })
    }

    /// The time between two moments in the experiment's own picoseconds.
    fn own(&self, from: Time, until: Time) -> u64 {
        own_time(until, self.time_scale).saturating_sub(own_time(from, self.time_scale))
    }

    /// All whose packets passed the place.
    pub(super) fn whos(&self) -> &[Who] {
        &self.whos
    }

    /// Who has most of the time of `sums`, and how many others have some.
    pub(super) fn most(&self, sums: &[u64]) -> (Who, u32) {
        let count = sums.iter().filter(|time| **time > 0).count();
        let largest = sums.iter().copied().max().unwrap_or_default();
        let who = sums.iter().zip(&self.whos).filter(|(time, _)| **time == largest).map(|(_, who)| *who).min();
        (who.unwrap_or(Who::Nobody), count.saturating_sub(1) as u32)
    }

    /// What was served from one moment to another, up to the service of a number, which ends at the later moment or
    /// after it. `None` where the transmitter was idle meanwhile.
    pub(super) fn served(&self, last: usize, [from, until]: [Time; 2]) -> Option<Served> {
        let ServiceEnd { ends, run, .. } = *self.services.get(last)?;
        let (start, begins) = self.runs[run as usize];
        if begins > from || ends < until {
            return None;
        }
        let first = self.first_after(start as usize, last, from);
        let ends = |service: usize| self.services[service].ends;
        Some(if first == last {
            Served { first: (first, self.own(from, until)), whole: 0..0, last: (last, 0) }
        } else {
            Served {
                first: (first, self.own(from, ends(first))),
                whole: first + 1..last,
                last: (last, self.own(ends(last - 1), until)),
            }
        })
    }

    /// The first service that ends at a moment or after it.
    pub(super) fn at(&self, moment: Time) -> usize {
        self.services.partition_point(|service| service.ends < moment)
    }

    /// The first of the services from `start` to `last` that ends after a moment, which the last one does. Looks near
    /// the last one first.
    fn first_after(&self, start: usize, last: usize, moment: Time) -> usize {
        let (mut low, mut width) = (last, 4);
        while low > start && self.services[low - 1].ends > moment {
            low = low.saturating_sub(width).max(start);
            width *= 2;
        }
        low + self.services[low..=last].partition_point(|service| service.ends <= moment)
    }

    /// Adds the time that was served to `sums`, by [`ServiceLog::whos`].
    pub(super) fn add(&self, served: Served, sums: &mut [u64]) {
        for (service, time) in [served.first, served.last] {
            sums[self.services[service].of as usize] += time;
        }
        let all = served.whole;
        let (first, last) = (all.start.div_ceil(self.step), all.end / self.step);
        if last <= first || (last - first) * self.step < 4 * self.whos.len() {
            return self.add_each(all, sums);
        }
        self.add_each(all.start..first * self.step, sums);
        let at = |total: usize| &self.totals[total * self.whos.len()..][..self.whos.len()];
        for ((sum, before), after) in sums.iter_mut().zip(at(first)).zip(at(last)) {
            *sum += after - before;
        }
        self.add_each(last * self.step..all.end, sums);
    }

    /// Adds the time of services none of which is the first of its run.
    fn add_each(&self, all: Range<usize>, sums: &mut [u64]) {
        if all.is_empty() {
            return;
        }
        let mut before = self.services[all.start - 1].ends;
        for service in &self.services[all] {
            sums[service.of as usize] += self.own(before, service.ends);
            before = service.ends;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ps: u64) -> Time {
        Time::from_ps(ps)
    }

    /// Services of 5 to 11 ps by three flows, with an idle time after each hundredth.
    fn services() -> Vec<(Time, Time, u32)> {
        let mut now = 3;
        let service = |number: u64| {
            now += if number.is_multiple_of(100) { 4 } else { 0 };
            let begins = now;
            now += 5 + number * 7 % 6;
            (at(begins), at(now), (number * number % 3) as u32 + 2)
        };
        (0..1000).map(service).collect()
    }

    #[test]
    fn many_services_at_once_are_the_sum_of_each() {
        for time_scale in [1, 3] {
            let all = services();
            let log = ServiceLog::new(all.iter().copied(), Who::Flow, time_scale, &mut vec![]);
            let ends = all.last().unwrap().1.as_ps();
            let mut idle = 0;
            for (from, length) in (0..ends).step_by(17).zip((1..4000).step_by(13).cycle()) {
                let (from, until) = (at(from), at((from + length).min(ends)));
                let mut naive = vec![0; log.whos().len()];
                let mut covered = 0;
                for (begins, ends, number) in &all {
                    let (begins, ends) = ((*begins).max(from), (*ends).min(until));
                    if begins < ends {
                        covered += (ends - begins).as_ps();
                        let who = log.whos().iter().position(|who| *who == Who::Flow(*number)).unwrap();
                        naive[who] += ends.as_ps() / time_scale - begins.as_ps() / time_scale;
                    }
                }
                let mut sums = vec![0; log.whos().len()];
                match log.served(log.at(until), [from, until]) {
                    Some(served) => log.add(served, &mut sums),
                    None => idle += 1,
                }
                let is_idle = covered < (until - from).as_ps();
                assert_eq!(sums, if is_idle { vec![0; naive.len()] } else { naive }, "{from:?} to {until:?}");
            }
            assert!((10..900).contains(&idle), "some waits have an idle time: {idle}");
        }
    }
}
