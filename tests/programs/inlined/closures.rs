// SPDX-License-Identifier: Apache-2.0
//! Closures, generics and iterators, which are inlined into each other as deep as they are nested.
use std::collections::HashMap;
use std::fmt::Debug;
use std::hint::black_box;

trait Price {
    fn price(&self, amount: u64) -> u64;
}

struct Fixed<const RATE: u64>;

impl<const RATE: u64> Price for Fixed<RATE> {
    fn price(&self, amount: u64) -> u64 {
        amount * RATE
    }
}

struct Tiered {
    tiers: Vec<(u64, u64)>,
}

impl Price for Tiered {
    fn price(&self, amount: u64) -> u64 {
        self.tiers.iter().filter(|t| amount > t.0).map(|t| over(amount, t.0) * t.1).sum()
    }
}

fn over(amount: u64, from: u64) -> u64 {
    black_box(amount - from).clamp(1, 1 << 20)
}

fn twice<F: Fn(u64) -> u64>(f: F) -> impl Fn(u64) -> u64 {
    move |x| f(f(x))
}

#[inline(never)]
fn total(prices: &[Box<dyn Price>], amounts: &[u64]) -> u64 {
    let step = twice(twice(|x| black_box(x) ^ 5));
    amounts.iter().flat_map(|&a| prices.iter().map(move |p| p.price(a))).map(step).fold(0, u64::wrapping_add)
}

#[inline(never)]
fn count<T: Debug>(values: &[T]) -> HashMap<char, usize> {
    let mut counts = HashMap::new();
    for value in values {
        for c in format!("{value:?}").chars() {
            *counts.entry(c).or_insert(0) += 1;
        }
    }
    counts
}

#[inline(never)]
fn longest(words: &mut Vec<String>) -> Option<&String> {
    words.sort_by_key(|w| (w.len(), w.clone()));
    words.retain(|w| w.chars().all(char::is_alphanumeric));
    words.last()
}

fn main() {
    let prices: Vec<Box<dyn Price>> = vec![
        Box::new(Fixed::<2>),
        Box::new(Fixed::<3>),
        Box::new(Tiered { tiers: (1..black_box(5)).map(|i| (i * 100, i)).collect() }),
    ];
    let amounts: Vec<u64> = (0..black_box(50)).map(|i| i * 7 % 90).collect();
    let mut words: Vec<String> = std::env::args().chain(amounts.iter().map(u64::to_string)).collect();
    println!("{} {} {:?}", total(&prices, &amounts), count(&amounts).len(), longest(&mut words));
}
