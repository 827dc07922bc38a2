//! Grafana's classic dashboard model, as far as `deploy/grafana` uses it: what Grafana publishes as
//! JSON Schemas in its Foundation SDK (`jsonschema/dashboard.jsonschema.json`, and one for each kind
//! of panel), written as types. Like those schemas they know no property that isn't listed, so that a
//! misspelt one, which Grafana would pass over in silence, is an error here.

use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

macro_rules! model {
    ($($(#[$about:meta])* $name:ident { $($fields:tt)* })*) => {$(
        $(#[$about])*
        #[derive(Debug, Clone, Deserialize)]
        #[serde(deny_unknown_fields, rename_all = "camelCase")]
        #[allow(missing_docs, reason = "the properties are Grafana's, who documents them")]
        pub struct $name { $($fields)* }
    )*};
}

macro_rules! words {
    ($($(#[$about:meta])* $name:ident $case:literal { $($word:ident),* })*) => {$(
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
        #[serde(rename_all = $case)]
        #[allow(missing_docs, reason = "the words are Grafana's, who documents them")]
        pub enum $name { $($word),* }
    )*};
}

model! {
    /// A whole dashboard.
    Dashboard {
        pub annotations: List<Annotation>,
        pub description: String,
        pub editable: bool,
        pub graph_tooltip: u8,
        pub id: (),
        pub links: Vec<Link>,
        pub panels: Vec<Value>,
        pub refresh: String,
        pub schema_version: u32,
        pub tags: Vec<String>,
        pub templating: List<Variable>,
        pub time: Range,
        pub timepicker: Nothing,
        pub timezone: String,
        pub title: String,
        pub uid: String,
        pub version: u32,
    }
    /// No property.
    Nothing {}
    /// A time range.
    Range { pub from: String, pub to: String, }
    /// Which data source.
    DataSource { pub r#type: String, pub uid: String, }
    /// Marks on all graphs.
    Annotation {
        pub built_in: Option<u8>,
        pub datasource: DataSource,
        pub enable: bool,
        pub expr: Option<String>,
        pub hide: bool,
        pub icon_color: String,
        pub name: String,
        pub step: Option<String>,
        pub tag_keys: Option<String>,
        pub text_format: Option<String>,
        pub title_format: Option<String>,
        pub r#type: Option<String>,
        pub use_value_for_time: Option<bool>,
    }
    /// A link at the top.
    Link {
        pub as_dropdown: bool,
        pub icon: String,
        pub include_vars: bool,
        pub keep_time: bool,
        pub tags: Vec<String>,
        pub target_blank: bool,
        pub title: String,
        pub tooltip: String,
        pub r#type: LinkType,
        pub url: String,
    }
    /// A variable.
    Variable {
        pub all_value: Option<String>,
        pub current: Option<Current>,
        pub datasource: Option<DataSource>,
        pub definition: Option<String>,
        pub hide: u8,
        pub include_all: bool,
        pub label: String,
        pub multi: bool,
        pub name: String,
        pub options: Vec<Current>,
        pub query: String,
        pub refresh: u8,
        pub regex: String,
        pub skip_url_sync: bool,
        pub sort: Option<u8>,
        pub r#type: VariableType,
    }
    /// A chosen value.
    Current { pub selected: bool, pub text: Vec<String>, pub value: Vec<String>, }
    /// A heading.
    Row {
        pub collapsed: bool,
        pub grid_pos: Place,
        pub id: u32,
        pub panels: Vec<Value>,
        pub title: String,
        pub r#type: String,
    }
    /// A place on the grid of 24 columns.
    Place { pub h: u32, pub w: u32, pub x: u32, pub y: u32, }
    /// A panel of any kind.
    Panel {
        pub datasource: DataSource,
        pub description: String,
        pub field_config: FieldConfig,
        pub grid_pos: Place,
        pub id: u32,
        pub options: Value,
        pub targets: Vec<Target>,
        pub title: String,
        #[serde(default)]
        pub transformations: Vec<Transformation>,
        pub r#type: Kind,
    }
    /// A query.
    Target {
        pub datasource: DataSource,
        pub editor_mode: EditorMode,
        pub expr: String,
        pub format: Option<Format>,
        #[serde(default)]
        pub instant: bool,
        pub legend_format: Option<String>,
        pub range: bool,
        pub ref_id: String,
    }
    /// A step between queries and panel.
    Transformation { pub id: String, pub options: Value, }
    /// How fields are shown.
    FieldConfig { pub defaults: Defaults, pub overrides: Vec<Override>, }
    /// How all fields are shown.
    Defaults {
        pub color: Option<Color>,
        #[serde(default)]
        pub custom: Value,
        pub decimals: Option<u8>,
        #[serde(default)]
        pub mappings: Vec<Mapping>,
        pub max: Option<f64>,
        pub min: Option<f64>,
        pub no_value: Option<String>,
        pub thresholds: Option<Thresholds>,
        pub unit: String,
    }
    /// How some fields are shown.
    Override { pub matcher: Matcher, pub properties: Vec<Property>, }
    /// Which fields.
    Matcher { pub id: String, pub options: String, }
    /// A property of them.
    Property { pub id: String, pub value: Value, }
    /// A colour or scheme.
    Color { pub mode: ColorMode, pub fixed_color: Option<String>, }
    /// Colours by value.
    Thresholds { pub mode: ThresholdsMode, pub steps: Vec<Step>, }
    /// A colour from a value on; the first has none.
    Step { pub color: String, pub value: Option<f64>, }
    /// Words in place of numbers.
    Mapping { pub r#type: MappingType, pub options: BTreeMap<String, MappingResult>, }
    /// One word.
    MappingResult { pub color: String, pub index: u32, pub text: String, }
    /// A link of a field.
    DataLink { pub target_blank: bool, pub title: String, pub url: String, }
    /// Options of a time series.
    TimeseriesOptions { pub legend: Legend, pub tooltip: Tooltip, }
    /// Properties of its fields.
    GraphField {
        pub fill_opacity: Option<u8>,
        pub line_interpolation: Option<LineInterpolation>,
        pub line_style: Option<LineStyle>,
        pub line_width: Option<u8>,
        pub show_points: Option<Visibility>,
        pub span_nulls: Option<bool>,
        pub stacking: Option<Stacking>,
        pub thresholds_style: Option<ThresholdsStyle>,
    }
    /// A dashed line.
    LineStyle { pub fill: LineFill, pub dash: Vec<u8>, }
    /// One upon the other.
    Stacking { pub mode: StackingMode, pub group: String, }
    /// Where thresholds are drawn.
    ThresholdsStyle { pub mode: ThresholdsStyleMode, }
    /// The legend.
    Legend {
        pub calcs: Vec<String>,
        pub display_mode: LegendMode,
        pub placement: LegendPlacement,
        pub show_legend: bool,
    }
    /// The tooltip.
    Tooltip { pub mode: TooltipMode, pub sort: Sort, }
    /// Options of a state timeline.
    TimelineOptions {
        pub align_value: Align,
        pub legend: Legend,
        pub merge_values: bool,
        pub row_height: f64,
        pub show_value: Visibility,
        pub tooltip: Tooltip,
    }
    /// Properties of its fields.
    TimelineField { pub fill_opacity: u8, pub line_width: u8, }
    /// Options of a table.
    TableOptions {
        pub cell_height: CellHeight,
        pub frame_index: u32,
        pub show_header: bool,
        #[serde(default)]
        pub sort_by: Vec<SortBy>,
    }
    /// A column by which a table is sorted, and the direction.
    SortBy { pub desc: bool, pub display_name: String, }
    /// Properties of its fields.
    TableField {
        pub align: Align,
        pub cell_options: Option<Cell>,
        pub filterable: bool,
        pub inspect: bool,
    }
    /// How a cell is drawn.
    Cell {
        pub apply_to_row: Option<bool>,
        pub mode: CellMode,
        pub r#type: CellType,
        pub value_display_mode: Option<CellValue>,
    }
    /// Options of a stat.
    StatOptions {
        pub color_mode: StatColor,
        pub graph_mode: StatGraph,
        pub justify_mode: Justify,
        pub orientation: Orientation,
        pub percent_change_color_mode: PercentChange,
        pub reduce_options: Reduce,
        pub show_percent_change: bool,
        pub text_mode: StatText,
        pub wide_layout: bool,
    }
    /// One value out of a series.
    Reduce { pub calcs: Vec<String>, pub fields: String, pub values: bool, }
    /// Options of the transformation `organize`.
    Organize {
        pub exclude_by_name: BTreeMap<String, bool>,
        pub index_by_name: BTreeMap<String, u32>,
        pub rename_by_name: BTreeMap<String, String>,
    }
    /// Options of the transformation `groupingToMatrix`.
    GroupingToMatrix {
        pub column_field: String,
        pub empty_value: String,
        pub row_field: String,
        pub value_field: String,
    }
}

words! {
    /// Kinds of links.
    LinkType "lowercase" { Link, Dashboards }
    /// Kinds of variables.
    VariableType "lowercase" { Query, Datasource }
    /// Kinds of panels.
    Kind "kebab-case" { Timeseries, Table, Stat, StateTimeline }
    /// How a query is edited.
    EditorMode "lowercase" { Code, Builder }
    /// Forms in which a panel gets a query's answer.
    Format "snake_case" { TimeSeries, Table, Heatmap }
    /// Where a field's colour comes from.
    ColorMode "kebab-case" { Thresholds, PaletteClassic, PaletteClassicByName, Fixed, Shades }
    /// Units of thresholds: the field's own, or percent of its range.
    ThresholdsMode "lowercase" { Absolute, Percentage }
    /// How a mapping picks the values that it shows in another way.
    MappingType "lowercase" { Value, Range, Regex, Special }
    /// When something is shown.
    Visibility "lowercase" { Auto, Never, Always }
    /// How points are joined.
    LineInterpolation "camelCase" { Linear, Smooth, StepBefore, StepAfter }
    /// How a line is filled.
    LineFill "lowercase" { Solid, Dash, Dot, Square }
    /// How series are stacked.
    StackingMode "lowercase" { None, Normal, Percent }
    /// How thresholds are drawn.
    ThresholdsStyleMode "lowercase" { Off, Line, Dashed, Area, Series }
    /// How a legend is set.
    LegendMode "lowercase" { List, Table, Hidden }
    /// Where a legend stands.
    LegendPlacement "lowercase" { Bottom, Right }
    /// How many series a tooltip shows: the one pointed at, all, or none.
    TooltipMode "lowercase" { Single, Multi, None }
    /// In which order.
    Sort "lowercase" { Asc, Desc, None }
    /// On which side.
    Align "lowercase" { Auto, Left, Right, Center }
    /// How a stat sets its text.
    Justify "lowercase" { Auto, Center }
    /// In which direction figures follow each other.
    Orientation "lowercase" { Auto, Vertical, Horizontal }
    /// How high a table's rows are.
    CellHeight "lowercase" { Sm, Md, Lg, Auto }
    /// Kinds of table cells: plain or coloured text, a coloured background, a gauge, a small graph.
    CellType "kebab-case" { Auto, ColorText, ColorBackground, Gauge, Sparkline }
    /// How a bar or a background is coloured.
    CellMode "lowercase" { Basic, Lcd, Gradient }
    /// How a bar's value is written.
    CellValue "lowercase" { Color, Text, Hidden }
    /// The parts of a stat that are coloured.
    StatColor "snake_case" { Value, Background, BackgroundSolid, None }
    /// Kinds of graphs behind a stat's value.
    StatGraph "lowercase" { None, Line, Area }
    /// The texts of a stat: its value, its name, both, or none.
    StatText "snake_case" { Auto, Value, ValueAndName, Name, None }
    /// How a change is coloured.
    PercentChange "snake_case" { Standard, Inverted, SameAsValue }
}

/// The object with one key that Grafana wraps lists in.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct List<T> {
    /// The list.
    pub list: Vec<T>,
}
