// Package charts gives programs the schema of the values of the chart karpenter.
//
// The schema is the one source of the names and types of values: Helm checks values with it before it installs, and
// the plugin's verb migrate checks files of values with it, so that a file that migrate calls unchanged is not refused
// later. Package migrate reads it; nothing else depends on it.
//
// Go files are not part of the charts: helm packages charts/karpenter and charts/karpenter-crd.
//
// The package must not contain knowledge of its own about values, and imports nothing of this project.
package charts

import _ "embed" // for the schema

//go:embed karpenter/values.schema.json
var schema []byte

// ValuesSchema returns the JSON schema of the values of the chart karpenter. The result must not be changed.
func ValuesSchema() []byte { return schema }
