package workload

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// World is the content of a folder. Pods without Spec.NodeName are pending.
type World struct {
	Name           string
	ProviderLabels []string
	Types          []InstanceType
	Pools          []karpv1.NodePool
	Nodes          []corev1.Node
	Pods           []corev1.Pod
	Bound          []corev1.Pod
}

// Read reads a folder that Write has written.
func Read(folder string) (*World, error) {
	var about meta
	var types struct{ InstanceTypes []InstanceType }
	var pools struct{ Items []karpv1.NodePool }
	var nodes struct{ Items []corev1.Node }
	var pods, bound struct{ Items []corev1.Pod }
	for _, f := range []struct {
		name     string
		into     any
		optional bool
	}{
		{"meta.json", &about, false}, {"instance-types.json", &types, false}, {"nodepools.json", &pools, false},
		{"pods.json", &pods, false}, {"nodes.json", &nodes, true}, {"bound-pods.json", &bound, true},
	} {
		content, err := os.ReadFile(filepath.Join(folder, f.name))
		if f.optional && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = json.Unmarshal(content, f.into)
		}
		if err != nil {
			return nil, fmt.Errorf("reading the workload in %s: %s: %w", folder, f.name, err)
		}
	}
	return &World{
		Name: about.Name, ProviderLabels: about.ProviderLabels, Types: types.InstanceTypes, Pools: pools.Items,
		Nodes: nodes.Items, Pods: pods.Items, Bound: bound.Items,
	}, nil
}
