//! The messages of Chakra's schema, as far as they are read: other fields are skipped.

/// What is said of a whole trace.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct GlobalMetadata {
    #[prost(string, tag = "1")]
    pub version: String,
}

/// A node of a trace.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct TraceNode {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// 5 is a send, 6 a receive, 7 a collective operation.
    #[prost(int32, tag = "3")]
    pub kind: i32,
    #[prost(uint64, repeated, tag = "4")]
    pub ctrl_deps: Vec<u64>,
    #[prost(uint64, repeated, tag = "5")]
    pub data_deps: Vec<u64>,
    #[prost(uint64, tag = "7")]
    pub duration_micros: u64,
    #[prost(message, repeated, tag = "10")]
    pub attributes: Vec<Attribute>,
}

/// A named value of a node.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Attribute {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(oneof = "AttributeValue", tags = "7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 28, 29")]
    pub value: Option<AttributeValue>,
}

/// Values of the types that the attributes in use can have.
#[derive(Clone, PartialEq, prost::Oneof)]
pub(super) enum AttributeValue {
    #[prost(int32, tag = "7")]
    Int32(i32),
    #[prost(int64, tag = "9")]
    Int64(i64),
    #[prost(uint32, tag = "11")]
    Uint32(u32),
    #[prost(uint64, tag = "13")]
    Uint64(u64),
    #[prost(sint32, tag = "15")]
    Sint32(i32),
    #[prost(sint64, tag = "17")]
    Sint64(i64),
    #[prost(fixed32, tag = "19")]
    Fixed32(u32),
    #[prost(fixed64, tag = "21")]
    Fixed64(u64),
    #[prost(sfixed32, tag = "23")]
    Sfixed32(i32),
    #[prost(sfixed64, tag = "25")]
    Sfixed64(i64),
    #[prost(bool, tag = "27")]
    Bool(bool),
    #[prost(message, tag = "28")]
    Bools(Bools),
    #[prost(string, tag = "29")]
    Text(String),
}

/// A list of truth values.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Bools {
    #[prost(bool, repeated, tag = "1")]
    pub values: Vec<bool>,
}
