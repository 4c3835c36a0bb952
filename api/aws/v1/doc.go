// Package v1 holds the wire types of the API group karpenter.k8s.aws, version v1. An
// EC2NodeClass configures instances on Amazon EC2. It is compatible with Karpenter's API
// (https://karpenter.sh/docs/concepts/nodeclasses/): names, defaults and validation are
// the same, so existing manifests apply unchanged.
//
//	NodePool.spec.template.spec.nodeClassRef --> EC2NodeClass
//	                                             spec: selectors of subnets, security groups, images;
//	                                                   identity, disks, metadata service, kubelet
//	                                             status: results of the selectors, and conditions
//
// Contents:
//
//   - the types with their CRD markers (ec2nodeclass.go, selector.go, machine.go,
//     kubelet.go, status.go); api/crds holds the definition generated from them;
//   - labels, annotations, tags and resources (labels.go), condition types and reasons
//     (conditions.go), image families (family.go);
//   - pure functions of one object: the drift hash (hash.go).
//
// Two validation rules differ from Karpenter's. An ID in a selector term excludes other
// fields in every term, not only if all terms break the rule. All volume sizes in Ti are
// accepted.
//
// The package does not depend on the provider that reads it, the AWS SDK, the engine or
// any other API group. It does no I/O, and no state changes after start-up.
//
// +kubebuilder:object:generate=true
// +groupName=karpenter.k8s.aws
package v1
