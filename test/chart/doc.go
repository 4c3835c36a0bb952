// Package chart tests the Helm charts of charts/ with Helm itself, as a library: what a user's `helm template`, `lint`,
// `install`, `upgrade` and `uninstall` would do, this does.
//
//	without a cluster     render ── the charts over a matrix of values, old values, refusals, the schema
//	                      rules ─── Prometheus's own parser and rule evaluation; every metric a registered one
//	                      boards ── Grafana's dashboards, the same
//	on one sandbox        install, apply again, upgrade, uninstall, the guard of the definitions, and
//	                      `karpenter controller` as the chart's service account: the API server's audit log says
//	                      which permissions were asked for, and none may be denied or unused without a reason
//
// The package has tests only. It must not know how the controller works: it sees the charts, the binary's flags, its
// metrics, and what the API server answers.
package chart
