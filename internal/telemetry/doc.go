// Package telemetry contains every metric and every event reason of the controller, so that the names on which
// dashboards and alerts rely can be reviewed and changed in one place.
//
//	controllers, loops, executor
//	   |  metrics.NodeClaimsCreated...         |  recorder.Emit(telemetry.Evicted(pod, reason))
//	   v                                       v
//	Metrics (metrics.go) --> Registerer     Recorder (recorder.go) --dedupe, limit--> events.k8s.io/v1
//	   ^                                       ^
//	Instrument (cloud.go): a cloud.Provider    events.go: one constructor per reason
//	that counts and times its calls
//
// Metric names, labels and buckets are those of upstream Karpenter (https://karpenter.sh/docs/reference/metrics/), so
// that its dashboards work. Additional metrics say so. The number of series of every metric is bounded: its labels
// are pools, zones, reasons and the like, never a pod, a node or a claim.
//
// Events are values: a constructor describes what happened to which object, and the Recorder decides whether to write
// it. The same event about the same object within its window is dropped. An event with another message is another
// event for the API too: its action contains a hash of the message.
//
// Nothing is registered at package initialization: New(registerer) creates and registers the metrics, so that each
// test has its own registry. The package must not depend on the engine, the store or any controller. It uses the API
// types and package cloud.
package telemetry
