"""Amplification: do captions tie groups and objects together more strongly than the images do?"""
