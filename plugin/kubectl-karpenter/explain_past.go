package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/karpenter-go/karpenter/plugin/cli"
	"github.com/karpenter-go/karpenter/plugin/history"
)

// addLogFlag adds the flag by which an explanation has the past too.
func (e *explanation) addLogFlag(flags *pflag.FlagSet) {
	flags.StringArrayVar(&e.logs, "log", nil,
		"file with the controller's log: what it says about the object is added; - for standard input; may be repeated")
}

// checkLog returns an error if a log is given and nothing that it could be about.
func (e *explanation) checkLog(name string) error {
	if len(e.logs) > 0 && name == "" {
		return cli.UsageErrorf("--log: want the name of the object whose past is asked for; kubectl karpenter history shows all")
	}
	return nil
}

// readPast reads the logs, once; nil if none are given.
func (e *explanation) readPast() (*history.View, error) {
	if e.past != nil || len(e.logs) == 0 {
		return e.past, nil
	}
	log, err := readLogs("--log", e.logs, e.in, e.progress)
	if err != nil {
		return nil, err
	}
	e.past = log.View(history.Query{})
	return e.past, nil
}

// pastOfNode returns what the logs say about a node, nil if none are given or none names it.
func (e *explanation) pastOfNode(name string) ([]*history.Node, error) {
	past, err := e.readPast()
	if past == nil {
		return nil, err
	}
	records, err := past.Node(name)
	if err != nil {
		return nil, e.tellMissing(err)
	}
	return records.Records, nil
}

// pastOfPod returns what the logs say about a pod, as pastOfNode does about a node.
func (e *explanation) pastOfPod(name string) ([]history.PodStage, error) {
	past, err := e.readPast()
	if past == nil {
		return nil, err
	}
	records, err := past.Pod(name)
	if err != nil {
		return nil, e.tellMissing(err)
	}
	return records.Stages, nil
}

// tellMissing says that the log does not name the object: what the cluster shows is the answer then.
func (e *explanation) tellMissing(err error) error {
	var missing *history.MissingError
	if !errors.As(err, &missing) {
		return err
	}
	fmt.Fprintf(e.progress, "%s: --log: %v\n", plugin, err)
	return nil
}

// withPast adds to an error about an object that is gone what the logs know of it.
func (e *explanation) withPast(err error, verb, name string) error {
	past, _ := e.readPast() // a log that cannot be read has nothing to add
	if past == nil {
		return err
	}
	known := false
	if verb == "node" {
		_, missing := past.Node(name)
		known = missing == nil
	} else {
		_, missing := past.Pod(name)
		known = missing == nil
	}
	if !known {
		return err
	}
	return fmt.Errorf("%w; the log has it: %s history %s %s -f %s", err, plugin, verb, name, strings.Join(e.logs, " -f "))
}
