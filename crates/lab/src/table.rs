//! Tables of a result: named columns of one length.

use std::borrow::Cow;
use std::collections::BTreeMap;

/// The values of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Texts.
    Text(Vec<Cow<'static, str>>),
    /// Texts of which many are alike.
    Named(Named),
    /// Whole numbers.
    Integer(Vec<i64>),
    /// Numbers; NaN where there is none.
    Number(Vec<f64>),
    /// True or false.
    Flag(Vec<bool>),
}

impl Column {
    /// How many values the column has.
    pub fn len(&self) -> usize {
        match self {
            Column::Text(values) => values.len(),
            Column::Named(values) => values.codes.len(),
            Column::Integer(values) => values.len(),
            Column::Number(values) => values.len(),
            Column::Flag(values) => values.len(),
        }
    }

    /// Whether the column has no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The values of a column of texts; `None` for others.
    pub fn texts(&self) -> Option<Vec<&str>> {
        match self {
            Column::Text(values) => Some(values.iter().map(AsRef::as_ref).collect()),
            Column::Named(values) => Some(values.iter().collect()),
            _ => None,
        }
    }
}

/// Texts, each of which is kept once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Named {
    /// The different texts.
    pub names: Vec<Cow<'static, str>>,
    /// The number of each row's text.
    pub codes: Vec<u32>,
}

impl Named {
    /// The text of each row.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.codes.iter().map(|code| self.names[*code as usize].as_ref())
    }
}

/// A column of texts that is made row by row, from keys of which the texts are the names.
#[derive(Debug)]
pub(crate) struct NamedRows<K> {
    codes: BTreeMap<K, u32>,
    /// The key and the number of the row before.
    last: Option<(K, u32)>,
    named: Named,
}

impl<K: Copy + Ord> NamedRows<K> {
    pub(crate) fn new() -> Self {
        NamedRows { codes: BTreeMap::new(), last: None, named: Named::default() }
    }

    /// A column with memory reserved for `rows` rows.
    pub(crate) fn with_capacity(rows: usize) -> Self {
        let named = Named { names: vec![], codes: Vec::with_capacity(rows) };
        NamedRows { codes: BTreeMap::new(), last: None, named }
    }

    /// Adds a row; `name` is asked once for each key.
    pub(crate) fn push(&mut self, key: K, name: impl FnOnce(K) -> Cow<'static, str>) {
        let code = self.code(key, name);
        self.push_code(code);
    }

    /// The number that rows of a key have; `name` is asked once for each key.
    pub(crate) fn code(&mut self, key: K, name: impl FnOnce(K) -> Cow<'static, str>) -> u32 {
        let known = self.last.filter(|(last, _)| *last == key).map(|(_, code)| code);
        let code = known.or_else(|| self.codes.get(&key).copied()).unwrap_or_else(|| {
            let code = self.named.names.len() as u32;
            self.named.names.push(name(key));
            self.codes.insert(key, code);
            code
        });
        self.last = Some((key, code));
        code
    }

    /// Adds a row by the number of its key.
    pub(crate) fn push_code(&mut self, code: u32) {
        self.named.codes.push(code);
    }

    /// Makes the column.
    pub(crate) fn column(self) -> Column {
        Column::Named(self.named)
    }
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Name of the column.
    pub name: &'static str,
    /// The meaning of the column, with its unit.
    pub doc: &'static str,
    /// One value for each row.
    pub values: Column,
}

/// A table of a result.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Name of the table.
    pub name: &'static str,
    /// The meaning of a row.
    pub doc: &'static str,
    /// The columns, in order.
    pub fields: Vec<Field>,
}

impl Table {
    /// A table without columns.
    pub fn new(name: &'static str, doc: &'static str) -> Self {
        Table { name, doc, fields: vec![] }
    }

    /// Adds a column.
    ///
    /// # Panics
    /// When the column is not as long as those before.
    #[must_use]
    pub fn with(mut self, name: &'static str, doc: &'static str, values: Column) -> Self {
        let rows = self.fields.first().map_or(values.len(), |first| first.values.len());
        assert_eq!(values.len(), rows, "column {name} of table {} has as many rows as the others", self.name);
        self.fields.push(Field { name, doc, values });
        self
    }

    /// Adds a column of texts, made of `rows`.
    #[must_use]
    pub fn text<T>(self, name: &'static str, doc: &'static str, rows: &[T], of: impl Fn(&T) -> String) -> Self {
        self.with(name, doc, Column::Text(rows.iter().map(|row| of(row).into()).collect()))
    }

    /// Adds a column of names of the program's own, made of `rows`.
    #[must_use]
    pub fn term<T>(self, name: &'static str, doc: &'static str, rows: &[T], of: impl Fn(&T) -> &'static str) -> Self {
        self.with(name, doc, Column::Text(rows.iter().map(|row| of(row).into()).collect()))
    }

    /// Adds a column of the names of the keys that `rows` have.
    #[must_use]
    pub(crate) fn names<T, K: Copy + Ord>(
        self,
        name: &'static str,
        doc: &'static str,
        rows: &[T],
        key: impl Fn(&T) -> K,
        name_of: impl Fn(K) -> Cow<'static, str>,
    ) -> Self {
        let mut names = NamedRows::new();
        rows.iter().for_each(|row| names.push(key(row), &name_of));
        self.with(name, doc, names.column())
    }

    /// Adds a column of counts, made of `rows`.
    #[must_use]
    pub fn count<T>(self, name: &'static str, doc: &'static str, rows: &[T], of: impl Fn(&T) -> u64) -> Self {
        let whole = |row| i64::try_from(of(row)).unwrap_or(i64::MAX);
        self.with(name, doc, Column::Integer(rows.iter().map(whole).collect()))
    }

    /// Adds a column of numbers, made of `rows`.
    #[must_use]
    pub fn number<T>(self, name: &'static str, doc: &'static str, rows: &[T], of: impl Fn(&T) -> f64) -> Self {
        self.with(name, doc, Column::Number(rows.iter().map(of).collect()))
    }

    /// The column of that name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.fields.iter().find(|field| field.name == name).map(|field| &field.values)
    }
}
