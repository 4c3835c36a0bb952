// Package userdata writes what a machine is told at its first start so that it joins the cluster as the node that was
// planned: the user data of EC2, per family of images, merged with the user's own.
//
//	class (family, userData, kubelet)  --+
//	cluster (endpoint, CA, DNS, CIDR)  --+--> Render --> at most 16384 bytes, or an error that names the field
//	node (labels, taints, pods)        --+
//
//	AL2           MIME: the user's parts, then a script that calls /etc/eks/bootstrap.sh
//	AL2023        MIME: the user's parts, then a NodeConfig; nodeadm lets later parts win
//	Bottlerocket  TOML: the user's settings, ours written over them
//	Custom        the user's text, byte for byte
//	Windows*      not yet acted on (ErrNotYetActedOn)
//
// Every family but Custom gets the taint karpenter.sh/unregistered and, because all taints of the claim are told here,
// the label karpenter.sh/do-not-sync-taints. Output is the same for the same input, down to the byte: launch templates
// are found again by a hash of it.
//
// What users write is decoded strictly in the formats that the images read (MIME, NodeConfig, TOML, the kubelet's
// configuration), because a machine that cannot read its user data runs, costs money and never joins. What is not in
// the formats that we know is refused with an error that names spec.userData or spec.kubelet and says what would be
// right; Bottlerocket's settings are the exception, since Bottlerocket itself names unknown ones.
//
// The package is pure: no clock, no network, no AWS SDK. It must not know where the facts come from, launch templates,
// or base64 (callers encode).
package userdata
