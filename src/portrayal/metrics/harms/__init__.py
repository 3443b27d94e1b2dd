"""Harms: do captions deny, reify, erase, stereotype or demean people, and in which words?"""
