// Package names contains the names that Karpenter's API had before v1, and their current names: labels, annotations,
// taints, and values of fields. It is the only table of them, and only handles strings.
//
//	karpenter.sh/provisioner-name  --Label-->          karpenter.sh/nodepool
//	karpenter.sh/do-not-evict      --PodAnnotation-->  karpenter.sh/do-not-disrupt
//	WhenUnderutilized              --Value-->          WhenEmptyOrUnderutilized
//
// It has three kinds of users:
//
//   - Readers of requirements (package convert, the validation of pools, drift) include Aliases in their label rules,
//     so that a pod that selects an old label is planned like one that selects the current label.
//   - The controller oldnames adds the old labels that pods use to managed nodes, with the values of the current
//     ones, because kube-scheduler does not know the aliases.
//   - kubectl karpenter migrate writes manifests with the current names.
//
// Old names of Kubernetes' own labels (beta.kubernetes.io/arch ...) are not included: they are rules of the API
// (karpv1.CoreRules), and the kubelet and cloud controllers set them on nodes.
//
// Sources: the upgrade guides (https://karpenter.sh/docs/upgrading/upgrade-guide/) of Karpenter v0.14 (dashes instead
// of dots in labels of instances), v0.32 (v1beta1) and v1.0.
package names
