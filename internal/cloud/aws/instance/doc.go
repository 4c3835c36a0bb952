// Package instance computes the provider's instance types from facts about EC2 instance types and one EC2NodeClass.
//
//	catalog.Type ----+
//	Class, Settings -+--> NewTypeSet --> TypeSet (labels, capacity, overhead, volume limits, exclusions)
//	Memory (seen) ---+                           |
//	Prices, Unavailable ------ Market -----------+--> Catalog: []cloud.InstanceType with current offerings
//
// An TypeSet is built when the class, its images or the types change. Catalog is cheap, and is called whenever
// prices or availability may have changed, so that no class uses the outdated data of another one. Prices, Unavailable
// and Memory hold what the provider learns while it runs. They are shared by all classes and safe for concurrent use.
//
// The formulas are those of the nodes' own bootstrap. Sources: the EKS max-pods calculator and nodeadm for pods and
// reserved amounts, the EC2 User Guide for volume limits, DescribeInstanceTypes for the rest. Each function names its
// own source.
//
// The package is pure. It must not depend on the AWS SDK, a Kubernetes client or the pods. It starts no goroutine and
// uses only the clock that is passed to it.
package instance
