package main

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const (
	kwokPool  = "{kind: NodePool, metadata: {name: k}, spec: {template: {spec: {nodeClassRef: {kind: KWOKNodeClass}}}}}"
	awsPool   = "{kind: NodePool, metadata: {name: a}, spec: {template: {spec: {nodeClassRef: {kind: EC2NodeClass}}}}}"
	kwokNode  = "{kind: Node, metadata: {name: kn}, spec: {providerID: 'kwok://kn'}}"
	awsNode   = "{kind: Node, metadata: {name: an}, spec: {providerID: 'aws:///eu-west-1a/i-0'}}"
	otherNode = "{kind: Node, metadata: {name: on}, spec: {providerID: 'gce://on'}}"
)

// testimonies are objects of a cluster, and the cloud that they identify.
var testimonies = []struct {
	name    string
	objects []string
	kwok    bool
	because string // part of the reason; empty: no reason is given
}{
	{"nothing", nil, false, ""},
	{"nodes of kwok", []string{otherNode, kwokNode}, true, "Node kn"},
	{"nodes of aws", []string{awsNode}, false, ""},
	{"nodes of both", []string{awsNode, kwokNode}, false, "two clouds, kwok (Node kn) and aws (Node an)"},
	{"a class", []string{"{kind: KWOKNodeClass, metadata: {name: c}}", awsNode}, true, "KWOKNodeClass c"},
	{"a claim", []string{"{kind: NodeClaim, metadata: {name: c}, spec: {nodeClassRef: {kind: KWOKNodeClass}}}", awsNode}, true, "NodeClaim c"},
	{"a pool counts before classes", []string{"{kind: EC2NodeClass, metadata: {name: c}}", kwokPool}, true, "NodePool k"},
	{"pools of both", []string{kwokPool, awsPool, kwokNode}, false, "two clouds"},
	{"a pool that was made of a Provisioner counts most", []string{awsPool, "{kind: NodePool, metadata: {name: m, annotations: {karpenter-go.github.io/made-from: Provisioner/m}}, spec: {template: {spec: {nodeClassRef: {kind: KWOKNodeClass}}}}}"}, true, "NodePool m"},
	{"what a Provisioner became counts most", []string{awsPool, "{kind: AWSNodeTemplate, metadata: {name: t}}", "{kind: Provisioner, metadata: {name: p}, status: {nodeClass: KWOKNodeClass/p}}"}, true, "Provisioner p"},
	{"a template of aws", []string{"{kind: AWSNodeTemplate, metadata: {name: t}}", kwokNode}, false, ""},
	{"a pool without a kind", []string{"{kind: NodePool, metadata: {name: k}, spec: {template: {spec: {nodeClassRef: {kind: 5}}}}}"}, false, ""},
}

func TestWitnesses(t *testing.T) {
	for _, test := range testimonies {
		t.Run(test.name, func(t *testing.T) {
			var w witnesses
			for _, text := range test.objects {
				object := &unstructured.Unstructured{}
				if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
					t.Fatal(err)
				}
				w.add(object)
			}
			kwok, because := w.kwok()
			if kwok != test.kwok {
				t.Errorf("kwok is %t because %q, want %t", kwok, because, test.kwok)
			}
			if (because == "") != (test.because == "") || !strings.Contains(because, test.because) {
				t.Errorf("the reason is %q, want %q", because, test.because)
			}
		})
	}
}
