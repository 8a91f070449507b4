#!/usr/bin/env node
// Starts the server from the built sources.
import '../dist/main.js';
