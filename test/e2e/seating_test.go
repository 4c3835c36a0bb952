package e2e

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// sat is a pod of a seating. Its name, which is also its UID, is that of its workload, a hyphen and a number.
type sat struct {
	name     string
	gib      int64
	priority int32
	spread   bool
	plan     assignment
	node     string // where it is
}

// seatingOf returns the seating of the pods, on nodes of 8 and 32 GiB.
func seatingOf(pods []sat) seating {
	s := seating{planned: map[types.UID]assignment{}}
	for name, gib := range map[string]int64{"small": 8, "other": 8, "spot": 32, "on-demand": 32, "second": 8} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		node.Status.Allocatable = corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourcePods: resource.MustParse("40"),
			corev1.ResourceMemory: *resource.NewQuantity(gib<<30, resource.BinarySI),
		}
		s.nodes = append(s.nodes, node)
	}
	for _, p := range pods {
		app, _, _ := strings.Cut(p.name, "-")
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: p.name, UID: types.UID(p.name), Labels: map[string]string{"app": app}}}
		pod.Spec.Priority, pod.Spec.NodeName = &p.priority, p.node
		pod.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: *resource.NewQuantity(p.gib<<30, resource.BinarySI)}}}}
		if p.spread {
			pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, WhenUnsatisfiable: corev1.DoNotSchedule}}
		}
		s.pods = append(s.pods, pod)
		if p.plan.node != "" {
			s.planned[pod.UID] = p.plan
		}
	}
	return s
}

func told(node string) assignment   { return assignment{node, true} }
func untold(node string) assignment { return assignment{node, false} }

// secondLaunch is a launch for pods that were planned onto other nodes before, and why it is not due to crowding.
type secondLaunch struct {
	change func(pods []sat) []sat
	launch string
	want   string
}

func (c secondLaunch) check(t *testing.T) {
	pods := []sat{
		{"db-0", 3, 1, false, told("small"), "second"},
		{"app-0", 7, 2, true, told("spot"), "spot"},
		{"app-1", 7, 2, true, told("on-demand"), "on-demand"},
		{"app-2", 7, 2, true, untold("spot"), "small"},
		{"app-3", 7, 2, true, untold("on-demand"), "on-demand"},
	}
	if c.change != nil {
		pods = c.change(pods)
	}
	if got := seatingOf(pods).notCrowdedOut(c.launch); got != c.want {
		t.Errorf("a launch for %q: %q, want %q", c.launch, got, c.want)
	}
}

// A second launch is due to crowding if pods of higher priority, which could not be nominated together, took the
// capacity of the pod that it is for. The seating is that of world 5034.
func TestSeating(t *testing.T) {
	for name, c := range map[string]secondLaunch{
		"crowded out": {launch: "db-0"},
		"crowded out by pods of which none is nominated": {
			change: func(pods []sat) []sat {
				pods[1].plan.nominated, pods[2].plan.nominated = false, false
				return pods
			},
			launch: "db-0",
		},
		"crowded out by a pod that was crowded out": {
			change: func(pods []sat) []sat {
				pods[0].node = "other"
				return append(pods, sat{"low-0", 5, 0, false, told("other"), "second"}, sat{"low-1", 1, 0, false, told("other"), "other"})
			},
			launch: "low-0",
		},
	} {
		t.Run(name, c.check)
	}
}

// Any other second launch is an error, and the pods are named because of which it is one.
func TestSeatingOfOtherLaunches(t *testing.T) {
	for name, c := range map[string]secondLaunch{
		"no pods":               {want: "it names no pods"},
		"no such pod":           {launch: "db-1", want: "its pod db-1 is gone"},
		"one of two pods stays": {launch: "db-0 app-0", want: "its pod app-0 fits on spot, where it was planned"},
		"no place in the plan": {
			change: func(pods []sat) []sat { pods[0].plan = assignment{}; return pods },
			launch: "db-0", want: "its pod db-0 had no place in the plan",
		},
		"not nominated": {
			change: func(pods []sat) []sat { pods[0].plan = untold("small"); return pods },
			launch: "db-0", want: "its pod db-0 was not nominated to small",
		},
		"the node is gone": {
			change: func(pods []sat) []sat { pods[0].plan = told("gone"); return pods },
			launch: "db-0", want: "its pod db-0 had a place on gone, which is gone",
		},
		"room for both": {
			change: func(pods []sat) []sat { pods[0].gib = 1; return pods },
			launch: "db-0", want: "its pod db-0 fits on small, where it was planned",
		},
		"too large for its node": {
			change: func(pods []sat) []sat { pods[0].gib = 9; return pods },
			launch: "db-0", want: "its pod db-0 does not fit on small beside pods that may be there",
		},
		"no higher priority": {
			change: func(pods []sat) []sat { pods[0].priority = 2; return pods },
			launch: "db-0", want: "its pod db-0 does not fit on small beside pods that may be there",
		},
		"planned onto the same node": {
			change: func(pods []sat) []sat { pods[3].plan = untold("small"); return pods },
			launch: "db-0", want: "its pod db-0 does not fit on small beside pods that may be there",
		},
		"the others are not spread": {
			change: func(pods []sat) []sat {
				for i := range pods {
					pods[i].spread = false
				}
				return pods
			},
			launch: "db-0", want: "its pod db-0 does not fit on small beside pods that may be there",
		},
		"all others are nominated": {
			change: func(pods []sat) []sat {
				for i := range pods {
					pods[i].plan.nominated = true
				}
				return pods
			},
			launch: "db-0", want: "its pod db-0 does not fit on small beside pods that may be there",
		},
		"none of the others is nominated to one of their nodes": {
			change: func(pods []sat) []sat { pods[2].plan.nominated = false; return pods },
			launch: "db-0", want: "its pod db-0 does not fit on small beside pods that may be there",
		},
	} {
		t.Run(name, c.check)
	}
}
