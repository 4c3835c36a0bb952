// Package migrate converts manifests of any version of Karpenter, values of its Helm chart, and data about a Cluster
// Autoscaler to the current API. It is pure: the input is text, the output is text and a report.
//
//	files --split--> documents --repair--> documents of one valid version --translate--> v1
//	                     |                                                      ^
//	                     +--> settings of the cluster (values, ConfigMap) ------+
//	                     +--> Cluster Autoscaler, node groups --propose--> NodePools, EC2NodeClasses
//
// The semantics of older objects are in other packages: package legacy/v1alpha5 has those of Provisioners and
// AWSNodeTemplates, legacy/v1beta1 those of v1beta1, and api/names those of labels and annotations. This package
// handles what files contain beyond objects:
//
//   - Comments, order and style. A document is a tree of YAML nodes (node.go). The result for an object is computed
//     as an object, and the tree is then changed to this content (reshape.go): unchanged parts keep their formatting,
//     and comments of removed parts move to their replacements, or to the parent. Pods keep every line: only names
//     are replaced in the text (document.go, edited). Documents of unknown kinds are passed through byte by byte.
//   - Mistakes, which are common in tutorials (repair*.go): fields at the wrong level, numbers instead of durations,
//     mixtures of v1 and v1beta1. A repair that has to guess prefers to keep a node.
//   - Relations between documents: kubelet settings belonged to the pool and now belong to the class (kubelets.go),
//     settings of the controller were in a ConfigMap or in values (values.go), node groups become pools
//     (autoscaler.go; groups.go reads nodes, eksctl*.go reads ClusterConfigs, grouplabels.go reads which labels pods
//     require).
//
// Every difference is reported in a Note. The result is the same for the same input, and a second migration changes
// nothing. Tests verify that for every manifest of the matrix in test/e2e/testdata/manifests.
//
// The package must not read files or a cluster, and contains no semantics of API versions.
package migrate
