// Package kubelet simulates the kubelets of simulated instances: an instance that has booted reads its user data as its
// image would, and registers as a Node that kwok's controller then keeps ready.
//
//	awssim: Booted(instance, user data) --> Read: cluster, labels, taints, pods, reserved amounts --> Node
//	        Gone(instance)              --> the Node is deleted, as the cloud controller manager does
//
// User data is parsed strictly, by the formats that the images document, and compared with the actual cluster. As in
// reality, a node with a wrong endpoint, certificate or NodeConfig never joins, and Refused has the reason. The Node
// has the provider ID, labels and taints that follow from the user data and the instance, and the capacity that a
// kubelet on the instance would report: slightly less memory than EC2 reports, and the configured maximum number of
// pods. Its allocatable amounts are the capacity minus what the image's bootstrap, or the user data, reserves.
//
// Sources: https://awslabs.github.io/amazon-eks-ami/nodeadm/ (AL2023), the bootstrap script of amazon-eks-ami (AL2),
// https://bottlerocket.dev/en/os/latest/#/api/settings/kubernetes/.
//
// The package must not depend on the provider that it tests, nor share code with it: its parsing is independent of the
// provider's rendering.
package kubelet
