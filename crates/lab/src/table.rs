//! Tables of a result: named columns of one length.

use std::borrow::Cow;

/// The values of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Texts.
    Text(Vec<Cow<'static, str>>),
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
            Column::Integer(values) => values.len(),
            Column::Number(values) => values.len(),
            Column::Flag(values) => values.len(),
        }
    }

    /// Whether the column has no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Name of the column.
    pub name: &'static str,
    /// What the column holds, with unit.
    pub doc: &'static str,
    /// One value for each row.
    pub values: Column,
}

/// A table of a result.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Name of the table.
    pub name: &'static str,
    /// What a row is.
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
