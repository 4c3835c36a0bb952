// Package viewer says which permissions the commands need that only read a cluster, and which role grants them.
//
//	error of the API server --Denied--> the user, or no refusal
//	user                    --Grant---> the command of an administrator
//
// The chart installs the role; test/chart compares it with Resources. The packages that read clusters (offline, doctor)
// compare what they read with Resources, too.
//
// The package must not read anything itself.
package viewer

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Role is the ClusterRole, as the chart names it by default.
const Role = "karpenter-view"

// resources are named as in a role: in plural, with the group after a dot.
var resources = []string{
	"nodepools.karpenter.sh", "nodeclaims.karpenter.sh", "nodeoverlays.karpenter.sh", "provisioners.karpenter.sh",
	"capacitybuffers.autoscaling.x-k8s.io", "capacityquotas.autoscaling.x-k8s.io", "podtemplates", "resourcequotas",
	"ec2nodeclasses.karpenter.k8s.aws", "awsnodetemplates.karpenter.k8s.aws", "kwoknodeclasses.karpenter.kwok.sh",
	"nodes", "pods", "namespaces", "persistentvolumes", "persistentvolumeclaims", "services", "replicationcontrollers", "limitranges", "events",
	"daemonsets.apps", "deployments.apps", "replicasets.apps", "statefulsets.apps", "jobs.batch", "cronjobs.batch",
	"poddisruptionbudgets.policy", "storageclasses.storage.k8s.io", "csinodes.storage.k8s.io",
	"runtimeclasses.node.k8s.io", "priorityclasses.scheduling.k8s.io", "pods.metrics.k8s.io",
	"customresourcedefinitions.apiextensions.k8s.io", "validatingwebhookconfigurations.admissionregistration.k8s.io",
	"mutatingwebhookconfigurations.admissionregistration.k8s.io", "endpointslices.discovery.k8s.io", "leases.coordination.k8s.io",
}

// Resources returns all resources that the commands read, except the ConfigMap of observed memory.
func Resources() []string { return slices.Sorted(slices.Values(resources)) }

// refusedUser matches the user in the API server's refusal (apiserver, endpoints/handlers/responsewriters).
var refusedUser = regexp.MustCompile(`User "([^"]*)" cannot`)

// Denied reports whether the API server refused a request for missing permissions, and the name of the user, "" if it
// is unknown.
func Denied(err error) (user string, denied bool) {
	if !apierrors.IsForbidden(err) {
		return "", false
	}
	if match := refusedUser.FindStringSubmatch(err.Error()); match != nil {
		user = match[1]
	}
	return user, true
}

// Subject names the user in a message.
func Subject(user string) string {
	if user == "" {
		return "the user"
	}
	return fmt.Sprintf("user %q", user)
}

// Grant says how an administrator gives the user, "" if the name is unknown, the role.
func Grant(user string) string {
	subject := "--user=" + cmp.Or(user, "NAME")
	if account, found := strings.CutPrefix(user, "system:serviceaccount:"); found {
		subject = "--serviceaccount=" + account
	}
	return fmt.Sprintf("the ClusterRole %s of the chart allows it: kubectl create clusterrolebinding NAME --clusterrole=%s %s", Role, Role, subject)
}
