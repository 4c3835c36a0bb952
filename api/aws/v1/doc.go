// Package v1 holds the wire types of the API group karpenter.k8s.aws, version v1:
// EC2NodeClass, which says how machines are made on Amazon EC2. It is compatible with
// Karpenter's API: same names, defaults and validation, so that existing manifests
// apply unchanged.
//
//	NodePool.spec.template.spec.nodeClassRef --> EC2NodeClass
//	                                             spec: selectors of subnets, security groups, images;
//	                                                   identity, disks, metadata service, kubelet
//	                                             status: what the selectors found, and conditions
//
// What is here:
//
//   - the types with their CRD markers (ec2nodeclass.go, selector.go, machine.go,
//     kubelet.go, status.go); api/crds holds the definition generated from them;
//   - the vocabulary: labels, annotations, tags, resources (labels.go), condition types
//     and reasons (conditions.go), families of images (family.go);
//   - pure functions of one object: the drift hash (hash.go), what is accepted and not
//     yet acted on (inert.go).
//
// Where the rules differ from Karpenter's they say so: ids in selector terms exclude
// other fields in every term, not only if all terms break the rule, and sizes in Ti
// are all accepted.
//
// It must not know the provider that reads it, the AWS SDK, the engine, or any other
// group. Nothing here does I/O, and nothing changes after start-up.
//
// +kubebuilder:object:generate=true
// +groupName=karpenter.k8s.aws
package v1
