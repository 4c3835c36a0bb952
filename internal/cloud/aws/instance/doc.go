// Package instance turns facts about EC2 instance types, and about one EC2NodeClass, into what the provider sells.
//
//	catalog.Type ----+
//	Class, Settings -+--> NewAssortment --> Assortment (labels, capacity, overhead, volume limits; why a type is left out)
//	Memory (seen) ---+                           |
//	Prices, Unavailable ------ Market -----------+--> Catalogue: []cloud.InstanceType with today's offerings
//
// An Assortment is built when the class, its images or the types change; Catalogue is cheap and asked again whenever
// prices or availability may have changed, so that no class ever shows what another one was told. Prices, Unavailable and
// Memory are the three things that the provider learns while it runs: shared by all classes, safe for several goroutines.
//
// The sums are those of the nodes' own bootstrap. Sources: the EKS max-pods calculator and nodeadm for pods and reserved
// amounts, the EC2 User Guide for volume limits, DescribeInstanceTypes for the rest; each function names its own.
//
// Not acted on yet: capacity reservations and placement groups (no type carries their labels), Windows beyond labels and
// pods, expressions in kubelet settings.
//
// The package is pure. It must not know the AWS SDK, a Kubernetes client or what the pods want. It starts no goroutine and asks no clock but the one it is given.
package instance
