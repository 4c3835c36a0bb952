package main

import (
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/karpenter-go/karpenter/api"
	"github.com/karpenter-go/karpenter/api/crds"
)

// upstreamDiscovery answers which kinds the API server serves: those of Kubernetes, and v1 of upstream's.
func upstreamDiscovery(t *testing.T, into map[string]string) {
	t.Helper()
	scheme, err := api.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	lists, groups := map[string]*metav1.APIResourceList{}, &metav1.APIGroupList{}
	for gvk := range scheme.AllKnownTypes() {
		own := strings.Contains(gvk.Group, "karpenter") || strings.HasPrefix(gvk.Group, "autoscaling")
		theirs := slices.Contains([]string{"NodePool", "NodeClaim", "EC2NodeClass"}, gvk.Kind)
		if gvk.Version != "v1" || own && !theirs || strings.HasSuffix(gvk.Kind, "List") {
			continue
		}
		at := gvk.GroupVersion().String()
		if lists[at] == nil {
			lists[at] = &metav1.APIResourceList{GroupVersion: at}
			if gvk.Group != "" {
				version := metav1.GroupVersionForDiscovery{GroupVersion: at, Version: "v1"}
				groups.Groups = append(groups.Groups, metav1.APIGroup{Name: gvk.Group, Versions: []metav1.GroupVersionForDiscovery{version},
					PreferredVersion: version})
			}
		}
		plural, _ := meta.UnsafeGuessKindToResource(gvk)
		lists[at].APIResources = append(lists[at].APIResources, metav1.APIResource{Name: plural.Resource, Kind: gvk.Kind,
			Namespaced: !own && !slices.Contains([]string{"Node", "Namespace", "CustomResourceDefinition"}, gvk.Kind),
			Verbs:      metav1.Verbs{"list", "get"}})
	}
	encode := func(path string, value any) {
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		into[path] = string(text)
	}
	for at, list := range lists {
		path := "/apis/" + at
		if at == "v1" {
			path = "/api/v1"
		}
		encode(path, list)
	}
	encode("/apis", groups)
	into["/api"], into["/version"] = `{"kind": "APIVersions", "versions": ["v1"]}`, `{"major": "1", "minor": "33", "gitVersion": "v1.33.1"}`
}

// upstreamDefinitions are the definitions of the kinds that upstream installs, without the older versions that it no longer
// serves from 1.1 on. The schemas are those of this module, which are wire compatible.
func upstreamDefinitions(t *testing.T) string {
	t.Helper()
	definitions, err := crds.Definitions()
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, d := range definitions {
		if !slices.Contains([]string{"nodepools.karpenter.sh", "nodeclaims.karpenter.sh", "ec2nodeclasses.karpenter.k8s.aws"}, d.Name) {
			continue
		}
		d.Annotations = map[string]string{"controller-gen.kubebuilder.io/version": "v0.18.0"}
		d.Spec.Conversion = nil
		d.Spec.Versions = slices.DeleteFunc(d.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
			return v.Name != "v1"
		})
		d.Status.StoredVersions = []string{"v1"}
		document, err := yaml.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		text += string(document) + "---\n"
	}
	return text
}

// TestEveryVerbOnUpstream runs every verb that only reads on a cluster that upstream's controller runs.
func TestEveryVerbOnUpstream(t *testing.T) {
	kubeconfig, log := upstreamCluster(t), upstreamLog(t)
	t.Chdir(files(t, map[string]string{"pool.yaml": upstreamPool, "karpenter.log": log,
		"new-pool.yaml": strings.Replace(upstreamPool, "values: [amd64]", "values: [amd64, arm64]", 1)}))
	for line, wants := range map[string][]string{
		"top --once":                                     {"ip-default-h"},
		"top --once -o json":                             {`"ip-default-h.ec2.internal"`},
		"explain node":                                   {"ip-default-h"},
		"explain node ip-default-h.ec2.internal":         {"PodDisruptionBudget shop/ledger"},
		"explain pod shop/search-7d9c-0":                 {"kubernetes.io/arch"},
		"explain pool default":                           {"PodDisruptionBudget shop/ledger"},
		"simulate --live --disrupt":                      {"ip-default-"},
		"simulate --live --diff pool.yaml new-pool.yaml": {"3 pods become schedulable"},
		"report --live -o markdown":                      {"ip-default-h", "UpstreamRuns"},
		"doctor":                                         {"UpstreamRuns deployment/kube-system/karpenter"},
		"history -f karpenter.log":                       {"1 node launched, 1 removed", "ip-default-z", "underutilized", "m5.2xlarge"},
		"history node default-a -f karpenter.log":        {"created (provisioned) for 2 pods"},
	} {
		out, progress, err := askPast(t, "", append(strings.Fields(line), "--kubeconfig", kubeconfig)...)
		for _, want := range wants {
			if !strings.Contains(strings.Join(strings.Fields(out), " "), want) {
				t.Errorf("%s: %v, no %q in\n%s\n%s", line, err, want, out, progress)
			}
		}
	}
	address, end := webOf(t, "--kubeconfig", kubeconfig)
	session := webSession(t, address)
	for _, view := range []string{"/fleet", "/pools", "/plan", "/savings", "/pending", "/bill", "/map", "/what-if"} {
		if page, status := session(view); status != http.StatusOK {
			t.Errorf("the page %s: status %d\n%s", view, status, page)
		}
	}
	if err := end(); err != nil {
		t.Error(err)
	}
}

// upstreamLog is the log of upstream's controller (1.5) about a node of upstreamCluster, and one that is gone. The forms
// are those of https://github.com/aws/karpenter-provider-aws/issues/7158 and 8536, and of
// https://github.com/kubernetes-sigs/karpenter/issues/2549.
func upstreamLog(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("testdata/upstream.log")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestExplainPast checks that explain adds what a log says of a node and of a pod, and names an object that only the log has.
func TestExplainPast(t *testing.T) {
	kubeconfig, log := upstreamCluster(t), upstreamLog(t)
	explain := func(in string, arguments ...string) (string, string, error) {
		return askPast(t, in, slices.Concat([]string{"explain"}, arguments, []string{"--kubeconfig", kubeconfig})...)
	}
	for _, c := range []struct{ arguments, want string }{
		{"node default-a --log -", "created (provisioned) for 2 pods: shop/web-7d9c-0, shop/cart-7d9c-0"},
		{"pod shop/web-7d9c-0 --log -", "node ip-default-a.ec2.internal (m5.2xlarge, us-east-1a, on-demand) was"},
	} {
		now, _, err := explain("", strings.Fields(strings.Split(c.arguments, " --log")[0])...)
		if err != nil {
			t.Fatal(err)
		}
		text, progress, err := explain(log, strings.Fields(c.arguments)...)
		words := strings.Join(strings.Fields(text), " ")
		if err != nil || progress != "" || !strings.HasPrefix(text, now+"\n") || !strings.Contains(words, c.want) {
			t.Errorf("%s: %v, %q\n%s\nwant the answer without a log, and %q", c.arguments, err, progress, text, c.want)
		}
	}
	var answer struct {
		Past []struct{ Launched, Registered string }
	}
	text, _, err := explain(log, "node", "default-a", "--log", "-", "-o", "json")
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		t.Fatal(err)
	}
	if err != nil || len(answer.Past) != 1 || answer.Past[0].Registered != "2026-06-01T09:00:30Z" {
		t.Errorf("%v, %+v; want one life with its registration", err, answer)
	}
	for _, c := range []struct{ arguments, want string }{
		{"node ip-default-z.ec2.internal --log -", "the log has it: kubectl karpenter history node ip-default-z.ec2.internal"},
		{"node --log -", "--log: want the name of the object"},
		{"pods -A --log -", "--log: want the name of the object"},
	} {
		if _, _, err := explain(log, strings.Fields(c.arguments)...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.arguments, err, c.want)
		}
	}
	if _, progress, err := explain(log, "node", "default-b", "--log", "-"); err != nil ||
		!strings.Contains(progress, "--log: the log does not name a node default-b") {
		t.Errorf("a node that the log does not have: %v, %q", err, progress)
	}
}
