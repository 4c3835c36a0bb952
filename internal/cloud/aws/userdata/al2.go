package userdata

import (
	"fmt"
	"net/netip"
	"strings"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
)

// al2 returns a MIME document: the user's parts, then the script that joins the cluster.
func (r Request) al2() ([]byte, error) {
	parts, err := r.al2Custom()
	if err != nil {
		return nil, err
	}
	return compose(append(parts, partOf(typeShell, r.bootstrapScript()))), nil
}

func (r Request) al2Custom() ([]part, error) {
	text := plain(r.Custom)
	switch {
	case text == "":
		return nil, nil
	case looksLikeMIME(text):
		return parseMIME(text)
	case namesNodeConfig(text):
		return nil, &InvalidError{Field: "spec.userData", Problem: "AL2 ignores a NodeConfig",
			Remedy: "use a shell script, or a MIME document of several, or set amiFamily: AL2023"}
	}
	contentType, ok := marked(text)
	if !ok {
		contentType = typeShell
	}
	return []part{partOf(contentType, text)}, nil
}

// bootstrapScript returns a script that calls the image's own bootstrap script
// (https://github.com/awslabs/amazon-eks-ami/blob/main/templates/al2/runtime/bootstrap.sh).
func (r Request) bootstrapScript() string {
	arguments := []string{"/etc/eks/bootstrap.sh " + quoted(r.Cluster.Name), "--apiserver-endpoint " + quoted(r.Cluster.Endpoint)}
	if r.Cluster.CABundle != "" {
		arguments[1] += " --b64-cluster-ca " + quoted(r.Cluster.CABundle)
	}
	if dns := r.dns(); len(dns) > 0 {
		if address, err := netip.ParseAddr(dns[0]); err == nil && address.Is6() {
			arguments = append(arguments, "--ip-family ipv6")
		}
		arguments = append(arguments, "--dns-cluster-ip "+quoted(dns[0]))
	}
	arguments = append(arguments, "--use-max-pods false", "--kubelet-extra-args "+quoted(strings.Join(r.kubeletFlags(), " ")))
	if r.InstanceStore == awsv1.InstanceStorePolicyRAID0 {
		arguments = append(arguments, "--local-disks raid0")
	}
	return "#!/bin/bash -xe\n" +
		"exec > >(tee /var/log/user-data.log|logger -t user-data -s 2>/dev/console) 2>&1\n" +
		strings.Join(arguments, " \\\n") + "\n"
}

// quoted returns the text as one shell word.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// kubeletFlags returns the kubelet's flags beyond those that the image sets.
func (r Request) kubeletFlags() []string {
	flags := []string{fmt.Sprintf("--node-labels=%q", r.labelList())}
	var taints []string
	for _, taint := range r.taints() {
		taints = append(taints, taint.ToString())
	}
	flags = append(flags, fmt.Sprintf("--register-with-taints=%q", strings.Join(taints, ",")), fmt.Sprintf("--max-pods=%d", r.Node.MaxPods))
	k := r.Kubelet
	if k == nil {
		return flags
	}
	number := func(name string, value *int32) {
		if value != nil {
			flags = append(flags, fmt.Sprintf("--%s=%d", name, *value))
		}
	}
	list := func(name, between string, entries map[string]string) {
		if len(entries) > 0 {
			flags = append(flags, fmt.Sprintf("--%s=%q", name, joined(entries, between)))
		}
	}
	number("pods-per-core", k.PodsPerCore)
	list("system-reserved", "=", amounts(k.SystemReserved))
	list("kube-reserved", "=", amounts(k.KubeReserved))
	list("eviction-hard", "<", k.EvictionHard)
	list("eviction-soft", "<", k.EvictionSoft)
	list("eviction-soft-grace-period", "=", k.EvictionSoftGracePeriod)
	number("eviction-max-pod-grace-period", k.EvictionMaxPodGracePeriod)
	number("image-gc-high-threshold", k.ImageGCHighThresholdPercent)
	number("image-gc-low-threshold", k.ImageGCLowThresholdPercent)
	if k.CPUCFSQuota != nil {
		flags = append(flags, fmt.Sprintf("--cpu-cfs-quota=%t", *k.CPUCFSQuota))
	}
	return flags
}
