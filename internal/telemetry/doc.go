// Package telemetry holds every metric and every event reason that we emit, in one place, so that the names that
// dashboards and alerts rely on can be read, and changed, in one sitting.
//
//	controllers, loops, executor
//	   |  metrics.NodeClaimsCreated...         |  recorder.Emit(telemetry.Evicted(pod, reason))
//	   v                                       v
//	Metrics (metrics.go) --> Registerer     Recorder (recorder.go) --dedupe, limit--> events.k8s.io/v1
//	   ^                                       ^
//	Instrument (cloud.go): a cloud.Provider    events.go: one constructor per reason
//	that counts and times its calls
//
// Metric names, labels and buckets are those of Karpenter (core specification 7.1), so that its dashboards work; the
// few of our own say so. Every metric is bounded in number: its labels name pools, zones, reasons and the like, never
// a pod, a node or a claim.
//
// Events are values: a constructor says what happened to which object, and the Recorder decides whether it is news.
// The same event about the same object within its window is dropped (core specification 7.2). An event with another
// message is another event for the API too: its action carries a hash of the message.
//
// Nothing is registered at package initialisation: New(registerer) builds and registers, so that tests have a
// registry each. The package must not know the engine, the store or any controller; it knows the API types and
// package cloud.
package telemetry
