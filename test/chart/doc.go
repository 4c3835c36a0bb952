// Package chart tests the Helm charts of charts/ with Helm itself, as a library: it does the same as a user's `helm
// template`, `lint`, `install`, `upgrade` and `uninstall`.
//
//	without a cluster     render ── the charts over a matrix of values, old values, refusals, the schema
//	                      rules ─── Prometheus's own parser and rule evaluation; every metric a registered one
//	                      boards ── Grafana's dashboards, the same
//	on one sandbox        install, apply again, upgrade, uninstall, the guard of the definitions, and
//	                      `karpenter controller` as the chart's service account: the API server's audit log contains
//	                      the permissions that were used, and none may be denied or unused without a reason
//
// The package contains only tests. It must not depend on how the controller works: its inputs are the charts, the
// binary's flags, its metrics, and the responses of the API server.
package chart
