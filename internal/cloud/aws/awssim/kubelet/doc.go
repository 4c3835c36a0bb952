// Package kubelet plays what simulated instances do after their start: an instance that has booted reads its user data as
// its image would, and registers as a Node that kwok's controller then keeps ready.
//
//	awssim: Booted(instance, user data) --> Read: cluster, labels, taints, pods, reserved amounts --> Node
//	        Gone(instance)              --> the Node is deleted, as the cloud's controller manager does
//
// User data is read strictly, by the formats that the images document, and compared with the cluster that is there: with a
// wrong endpoint, certificate or NodeConfig the node never joins, as in life, and Refused says why. The Node has the
// provider id, labels and taints that follow from the user data and from the instance, and the capacity that a kubelet on
// the instance would report: a little less memory than EC2 says, and as many pods as it was told. What it offers to pods
// is that less what the image's bootstrap, or the user data, reserves.
//
// Sources: https://awslabs.github.io/amazon-eks-ami/nodeadm/ (AL2023), the bootstrap script of amazon-eks-ami (AL2),
// https://bottlerocket.dev/en/os/latest/#/api/settings/kubernetes/.
//
// The package must not know the provider that it judges, nor share code with it: it reads in its own ways what the
// provider writes in other ones.
package kubelet
