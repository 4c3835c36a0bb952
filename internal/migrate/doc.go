// Package migrate brings manifests of any version of Karpenter, values of its Helm chart, and what is known of a Cluster
// Autoscaler, to today's API. It is pure: texts go in, texts and a report come out.
//
//	files --split--> documents --repair--> documents of one valid version --translate--> v1
//	                     |                                                      ^
//	                     +--> settings of the cluster (values, ConfigMap) ------+
//	                     +--> Cluster Autoscaler, node groups --propose--> NodePools, EC2NodeClasses
//
// What older objects mean is not known here: package legacy knows it of Provisioners and AWSNodeTemplates, legacy/beta of
// v1beta1, legacy/names of labels and annotations. Here is what files have beyond objects:
//
//   - Comments, order and style. A document is a tree of YAML nodes (node.go). What an object becomes is computed as an
//     object, and the tree is then given that meaning (reshape.go): what says the same stays as it was written, and
//     comments of what is gone move to what took its place, or up. Pods keep every line: only names are replaced in the
//     text (document.go, edited). Documents that are nobody's of ours pass byte by byte.
//   - Mistakes, which tutorials are full of (repair*.go): fields at the wrong level, numbers in place of times, v1 with
//     half of v1beta1. A repair that has to guess rather keeps a node than removes it.
//   - What belongs together: kubelet settings were the pool's and are the class's (kubelets.go), settings of the controller
//     were in a ConfigMap or in values (values.go), node groups become pools (autoscaler.go; groups.go reads nodes, eksctl*.go
//     ClusterConfigs, grouplabels.go what pods ask of both).
//
// Everything that is said differently is a Note. The result is the same for the same input, and migrating it again changes
// nothing; tests hold that for every manifest of the matrix in test/e2e/testdata/manifests.
//
// It must not read files, know a cluster, or decide what a version means.
package migrate
