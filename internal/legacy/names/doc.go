// Package names holds the names that Karpenter's API had before v1, and what each of them is called today: labels,
// annotations, taints, and values of fields. It is the one table of them, and knows nothing but strings.
//
//	karpenter.sh/provisioner-name  --Label-->          karpenter.sh/nodepool
//	karpenter.sh/do-not-evict      --PodAnnotation-->  karpenter.sh/do-not-disrupt
//	WhenUnderutilized              --Value-->          WhenEmptyOrUnderutilized
//
// Three kinds of readers go by it:
//
//   - Whoever reads requirements (package convert, the checks of pools, drift) takes Aliases among its label rules, so
//     that a pod that selects an old label is planned like one that selects today's.
//   - Package oldnames of the controllers puts the old labels that pods use onto our nodes, with the values of today's,
//     because kube-scheduler knows nothing of aliases.
//   - karpenter migrate writes manifests anew with today's names.
//
// Old names of Kubernetes' own labels (beta.kubernetes.io/arch ...) are not here: they are rules of the API
// (karpv1.CoreRules), and the kubelet and cloud controllers put them on nodes.
//
// Sources: the upgrade guides of Karpenter v0.14 (dashes instead of dots in labels of instances), v0.32 (v1beta1) and v1.0.
package names
