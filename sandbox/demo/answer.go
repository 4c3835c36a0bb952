package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/karpenter-go/karpenter/plugin/table"
)

// disruptAnswer is what the demo reads of the answer of `simulate --disrupt -o json` (docs/simulate.md). Money is USD
// per hour.
type disruptAnswer struct {
	Before            fleetFigures     `json:"before"`
	Steps             []disruptionStep `json:"steps"`
	After             fleetFigures     `json:"after"`
	LowerBoundPerHour float64          `json:"lowerBoundPerHour"`
	Kept              []keptNode       `json:"kept"`
	// UnderWay counts nodes of commands that were started before.
	UnderWay int `json:"underWay"`
}

type fleetFigures struct {
	Nodes        int     `json:"nodes"`
	PricePerHour float64 `json:"pricePerHour"`
}

type disruptionStep struct {
	Reason string      `json:"reason"`
	Remove []string    `json:"remove"`
	Add    []addedNode `json:"add"`
	Moved  int         `json:"podsMoved"`
	Saving float64     `json:"savingPerHour"`
}

type addedNode struct {
	InstanceType string  `json:"instanceType"`
	CapacityType string  `json:"capacityType"`
	PricePerHour float64 `json:"pricePerHour"`
}

type keptNode struct {
	Reasons []struct {
		Code string `json:"code"`
	} `json:"reasons"`
}

// temporary are the codes of reasons that end by time alone, within a minute in this story.
var temporary = []string{"NodeTooYoung", "NodeNominated", "NodeExpecting", "NodeUnsettled", "Paused"}

// waiting counts the nodes that are kept for such a reason.
func (a *disruptAnswer) waiting() int {
	n := 0
	for _, node := range a.Kept {
		for _, reason := range node.Reasons {
			if slices.Contains(temporary, reason.Code) {
				n++
				break
			}
		}
	}
	return n
}

const noStepLeft = "no step left"

// ahead describes the remaining steps.
func (a *disruptAnswer) ahead() string {
	switch waiting := a.waiting(); {
	case len(a.Steps) > 0:
		return table.Plural(len(a.Steps), "step") + " to start"
	case a.UnderWay > 0:
		return "started steps are in progress"
	case waiting > 0:
		return table.Plural(waiting, "node") + " temporarily kept"
	}
	return noStepLeft
}

// liveAnswer runs kubectl karpenter simulate on the fleet.
func (d *demo) liveAnswer(ctx context.Context, untilStable bool) (*disruptAnswer, error) {
	output, err := d.simulate(ctx, fmt.Sprintf("--until-stable=%t", untilStable))
	if err != nil {
		return nil, err
	}
	answer := &disruptAnswer{}
	if err := json.Unmarshal(output, answer); err != nil {
		return nil, fmt.Errorf("reading the answer of %s: %w", simulator, err)
	}
	return answer, nil
}

// capture writes the fleet to a file, and prints the command that shows it as a page.
func (d *demo) capture(ctx context.Context) error {
	file := filepath.Join(d.dataDir, "fleet.json")
	if _, err := d.simulate(ctx, "--capture="+file); err != nil {
		return err
	}
	tool, err := program(simulator)
	if err != nil {
		return err
	}
	fmt.Fprintf(d.out, "\nTo see this fleet as a page in the browser, now or later:\n\n  %s web -f %s\n", tool, file)
	return nil
}

// simulate runs kubectl karpenter simulate --live --disrupt and returns its output as JSON.
func (d *demo) simulate(ctx context.Context, flags ...string) ([]byte, error) {
	tool, err := program(simulator)
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, tool, append([]string{"simulate", "--live", "--disrupt", "--kubeconfig=" + d.cluster.kubeconfig,
		"--cloud-provider=kwok", "--now=" + time.Now().UTC().Format(time.RFC3339), "-o", "json"}, flags...)...)
	command.SysProcAttr = childAttributes()
	var complaint bytes.Buffer
	command.Stderr = &complaint
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w: %s", simulator, err, strings.TrimSpace(complaint.String()))
	}
	return output, nil
}

// simulator is the program with the verb simulate.
const simulator = "kubectl-karpenter"
