package main

import (
	"runtime/debug"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// newControllerLog is a JSON log with the keys of core specification 7.6. flush writes what is still buffered.
func newControllerLog(o *controllerOptions) (log logr.Logger, flush func(), err error) {
	level := zapcore.InfoLevel
	if o.logLevel != "" {
		if level, err = zapcore.ParseLevel(o.logLevel); err != nil {
			return logr.Logger{}, nil, usageErrorf("--log-level: %w", err)
		}
	}
	callerKey := ""
	if level == zapcore.DebugLevel {
		callerKey = "caller"
	}
	config := zap.Config{
		Level:             zap.NewAtomicLevelAt(level),
		DisableCaller:     callerKey == "",
		DisableStacktrace: true,
		Sampling:          &zap.SamplingConfig{Initial: 100, Thereafter: 100},
		Encoding:          "json",
		EncoderConfig: zapcore.EncoderConfig{
			TimeKey: "time", LevelKey: "level", NameKey: "logger", MessageKey: "message", CallerKey: callerKey,
			EncodeTime: zapcore.ISO8601TimeEncoder, EncodeLevel: zapcore.CapitalLevelEncoder, EncodeCaller: zapcore.ShortCallerEncoder,
			EncodeDuration: func(d time.Duration, to zapcore.PrimitiveArrayEncoder) { to.AppendString(d.String()) },
		},
		OutputPaths:      strings.Split(o.logOutputs, ","),
		ErrorOutputPaths: strings.Split(o.errorOutput, ","),
		InitialFields:    buildFields(commit()),
	}
	built, err := config.Build()
	if err != nil {
		return logr.Logger{}, nil, usageErrorf("opening the log (--log-output-paths, --log-error-output-paths): %w", err)
	}
	return zapr.NewLogger(built).WithName("controller"), func() { _ = built.Sync() }, nil
}

// buildFields are on every line of the log: the commit, where the build knows it.
func buildFields(commit string) map[string]any {
	if commit == "" {
		return nil
	}
	return map[string]any{"commit": commit}
}

// commit is the revision that the program was built from: seven characters, and "-dirty" when the tree had changes. It is
// empty where the Go command was told not to ask git (-buildvcs=false), or found no repository.
func commit() string {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	revision, suffix := "", ""
	for _, setting := range build.Settings {
		switch {
		case setting.Key == "vcs.revision":
			revision = setting.Value[:min(7, len(setting.Value))]
		case setting.Key == "vcs.modified" && setting.Value == "true":
			suffix = "-dirty"
		}
	}
	return revision + suffix
}
