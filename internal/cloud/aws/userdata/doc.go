// Package userdata renders EC2 user data, which makes a machine join the cluster as the planned node at its first
// start. The format depends on the image family, and the result is merged with the user's own data.
//
//	class (family, userData, kubelet)  --+
//	cluster (endpoint, CA, DNS, CIDR)  --+--> Render --> at most 16384 bytes, or an error with the field
//	node (labels, taints, pods)        --+
//
//	AL2           MIME: the user's parts, then a script that calls /etc/eks/bootstrap.sh
//	AL2023        MIME: the user's parts, then a NodeConfig; nodeadm gives later parts precedence
//	Bottlerocket  TOML: the user's settings, overridden by the required ones
//	Custom        the user's text, byte for byte
//	Windows*      a PowerShell script that calls the image's Start-EKSBootstrap.ps1
//
// Every family but Custom gets the taint karpenter.sh/unregistered and, because user data contains all taints of the
// claim, the label karpenter.sh/do-not-sync-taints. The same input always results in the same bytes, because launch
// templates are identified by a hash of them.
//
// User input is decoded strictly in the formats that the images read (MIME, NodeConfig, TOML, the kubelet's
// configuration), because a machine that cannot read its user data runs, costs money and never joins. Anything outside
// of the known formats is rejected with an error that names spec.userData or spec.kubelet and a valid form.
// Bottlerocket's settings are the exception, because Bottlerocket itself reports unknown ones.
//
// The package is pure: no clock, no network, no AWS SDK. It must not depend on the source of the facts, on launch
// templates, or on base64 (callers encode).
package userdata
